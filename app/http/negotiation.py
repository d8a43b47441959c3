"""Which of the forms that an answer can have its reader likes best (RFC 9110, section 12.5.1)."""

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import Request

from app.codecs.base import MAX_TEXT
from app.errors import NotAcceptable


class _Range(NamedTuple):
    """What a part of the header is about, and how much it is liked."""

    kind: str
    subtype: str
    quality: float

    def precision(self, media_type: str) -> int:
        """How exactly this speaks of a media type; 0: not at all."""
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == (kind, subtype):
            return 3
        if self.subtype == "*" and self.kind in (kind, "*"):
            return 2 if self.kind == kind else 1
        return 0


def preferred(request: Request, offered: Sequence[str]) -> str:
    """Of the media types that are offered the one that the request likes best, the first of several; raises NotAcceptable if it likes none."""
    header = ",".join(request.headers.getlist("accept"))
    ranges = [_range(part) for part in header.split(",") if part.strip()]
    if not ranges:
        return offered[0]
    liked = {media_type: _quality(media_type, ranges) for media_type in offered}
    best = max(offered, key=lambda media_type: liked[media_type])
    if not liked[best]:
        raise NotAcceptable(f"Accept {header[:MAX_TEXT]!r}: this answer comes as {' or '.join(offered)}")
    return best


def _quality(media_type: str, ranges: Sequence[_Range]) -> float:
    """That of the range that speaks of it most exactly."""
    precision, quality = max((each.precision(media_type), each.quality) for each in ranges)
    return quality if precision else 0.0


def _range(part: str) -> _Range:
    name, *parameters = part.lower().split(";")
    kind, _, subtype = name.strip().partition("/")
    given = dict(parameter.strip().partition("=")[::2] for parameter in parameters)
    try:
        quality = float(given.get("q", "1"))
    except ValueError:
        quality = 0.0
    return _Range(kind, subtype, min(max(quality, 0.0), 1.0) if quality == quality else 0.0)
