"""Content negotiation: the media type of an answer by the Accept header (RFC 9110, section 12.5.1)."""

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import Request

from app.errors import NotAcceptable
from storage.records import MAX_TEXT


class _MediaRange(NamedTuple):
    """One media range of the header, with its quality value."""

    kind: str
    subtype: str
    quality: float

    def specificity(self, media_type: str) -> int:
        """How specifically the range matches a media type, from 3 (both parts) to 0 (not at all)."""
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == (kind, subtype):
            return 3
        if self.subtype == "*" and self.kind in (kind, "*"):
            return 2 if self.kind == kind else 1
        return 0


def negotiate(request: Request, offered: Sequence[str]) -> str:
    """The offered media type of the highest quality, the first of equals; raises NotAcceptable if the request accepts
    none.
    """
    header = ",".join(request.headers.getlist("accept"))
    ranges = [_range(part) for part in header.split(",") if part.strip()]
    if not ranges:
        return offered[0]
    qualities = {}
    for media_type in offered:
        # the most specific range counts
        specificity, quality = max((each.specificity(media_type), each.quality) for each in ranges)
        qualities[media_type] = quality if specificity else 0.0
    best = max(offered, key=lambda media_type: qualities[media_type])
    if not qualities[best]:
        raise NotAcceptable(f"Accept {header[:MAX_TEXT]!r}: this answer comes as {' or '.join(offered)}")
    return best


def _range(part: str) -> _MediaRange:
    name, *parameters = part.lower().split(";")
    kind, _, subtype = name.strip().partition("/")
    values = dict(parameter.strip().partition("=")[::2] for parameter in parameters)
    try:
        quality = float(values.get("q", "1"))
    except ValueError:
        quality = 0.0
    return _MediaRange(kind, subtype, min(max(quality, 0.0), 1.0) if quality == quality else 0.0)
