"""Query parameters of lists that come in pages."""

from typing import Annotated

from fastapi import Query

PageSize = Annotated[int, Query(ge=1, le=500, description="Most entries of a page.")]
Cursor = Annotated[str | None, Query(max_length=256, description="`next_cursor` of the page before.")]
