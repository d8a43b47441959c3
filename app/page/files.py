"""The files of the page, read once: compressed, with a digest each, and their Content-Security-Policy."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src "
    "'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content-Security-Policy: files of this server alone, no script or style in the page, no text that becomes code or
markup."""
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file of the page."""

    media_type: str
    data: bytes
    compressed: bytes
    tag: str
    """Entity tag, a digest of the content."""

    def response(self, request: Request) -> Response:
        """The file, or 304 where the browser has it.

        Browsers ask each time, so that a page never runs with files of another version.
        """
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding"}
        if self.media_type == "text/html":
            headers["Content-Security-Policy"] = POLICY
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                self.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type
            )
        return Response(self.data, headers=headers, media_type=self.media_type)


@cache
def page_files() -> Mapping[str, PageFile]:
    """The files by their paths below the package."""
    folder = Path(__file__).parent
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TYPES:
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            name = path.relative_to(folder).as_posix()
            found[name] = PageFile(_TYPES[path.suffix], data, gzip.compress(data, 9, mtime=0), tag)
    return found
