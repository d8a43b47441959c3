"""Lists: the query parameters of their pages, and the damaged records that they leave out."""

import re
from typing import Annotated

from fastapi import Query

from storage.store.keys import Damage

PageSize = Annotated[int, Query(ge=1, le=500, description="Most entries of a page.")]
Cursor = Annotated[str | None, Query(max_length=256, description="`next_cursor` of the page before.")]
_MOST_NAMED = 10


def left_out(damage: Damage, pattern: str) -> list[str]:
    """A warning about damaged records with keys of this pattern, as far as this process knows them; none if all can be
    read.
    """
    keys = sorted(key for key in damage.found if re.fullmatch(pattern, key))
    if not keys:
        return []
    count = "1 damaged record is" if len(keys) == 1 else f"{len(keys)} damaged records are"
    more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
    return [f"{count} left out: {', '.join(keys[:_MOST_NAMED])}{more}; `halfmoon doctor` says what is wrong"]
