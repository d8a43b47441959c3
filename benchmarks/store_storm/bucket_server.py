"""An S3 server on a folder that survives its restart: localbucket, with the deletion of many keys at once, and with
listings that read the listed keys alone, not the whole bucket.

``python -m benchmarks.store_storm.bucket_server FOLDER --port PORT``
"""

import logging
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import localbucket

_NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_Page = tuple[list[tuple[str, Path]], list[str], bool, str]


class Handler(localbucket.S3Handler):  # type: ignore[misc]
    """The requests of localbucket, and DeleteObjects; listings by the folder of their prefix."""

    def _post_request(self, bucket: str, key: str) -> None:
        if key or "delete" not in self.query:
            super()._post_request(bucket, key)
            return
        answer = ET.Element("DeleteResult", xmlns=_NAMESPACE[1:-1])
        for found in ET.fromstring(self._read_body()).iter():
            if found.tag.removeprefix(_NAMESPACE) == "Key":
                path = self._object_path(bucket, found.text)
                if not path.is_dir():  # a folder of keys is no key itself
                    path.unlink(missing_ok=True)
                ET.SubElement(ET.SubElement(answer, "Deleted"), "Key").text = found.text
        self._send_xml(answer)

    def _list_entries(
        self, bucket_dir: Path, prefix: str, delimiter: str, marker: str, marker_is_prefix: bool, max_keys: int
    ) -> _Page:
        """A page of keys and common prefixes after the marker, whether more follow, and the entry that it ends with."""
        found = _below(bucket_dir, prefix.rpartition("/")[0], delimiter == "/")
        # what a marker that is a prefix stands for comes before everything that begins with it
        last = marker.encode() + b"\xff" * marker_is_prefix
        entries = sorted((key for key in found if key.startswith(prefix) and key.encode() > last), key=str.encode)
        page = entries[:max_keys]
        common = [key for key in page if key.endswith("/")]
        contents = [(key, bucket_dir / key) for key in page if not key.endswith("/")]
        end = ("P:" if page[-1].endswith("/") else "K:") + page[-1] if page else ""
        return contents, common, 0 < max_keys < len(entries), end

    def log_message(self, *_: object) -> None:
        """Nothing: it would log every request."""

    def _dispatch(self, action: object) -> None:
        try:
            super()._dispatch(action)
        except FileNotFoundError:  # the folder of a key was removed with another, in this moment
            self._send_error(localbucket.S3Error(HTTPStatus.SERVICE_UNAVAILABLE, "SlowDown", "try again"))


def _below(bucket_dir: Path, folder: str, flat: bool) -> Iterator[str]:
    """The keys below a folder; with ``flat`` those in it, and its folders that hold keys, ending with a slash."""
    for directory, folders, files in os.walk(bucket_dir / folder):
        start = os.path.relpath(directory, bucket_dir) + "/" if directory != str(bucket_dir) else ""
        yield from (start + name for name in files if not name.startswith(localbucket.TEMP_PREFIX))
        if flat:
            yield from (
                f"{start}{name}/"
                for name in folders
                if any(files for _, _, files in os.walk(os.path.join(directory, name)))
            )
            return


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    localbucket.S3Handler = Handler
    localbucket.main()
