"""An S3 server on a folder that survives its restart: localbucket, and the deletion of many keys at once that it lacks.

``python -m benchmarks.store_storm.bucket_server FOLDER --port PORT``
"""

import logging
import xml.etree.ElementTree as ET
from http import HTTPStatus

import localbucket

_NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class Handler(localbucket.S3Handler):  # type: ignore[misc]
    """The requests of localbucket, and DeleteObjects."""

    def _post_request(self, bucket: str, key: str) -> None:
        if key or "delete" not in self.query:
            super()._post_request(bucket, key)
            return
        answer = ET.Element("DeleteResult", xmlns=_NAMESPACE[1:-1])
        for found in ET.fromstring(self._read_body()).iter():
            if found.tag.removeprefix(_NAMESPACE) == "Key":
                self._object_path(bucket, found.text).unlink(missing_ok=True)
                ET.SubElement(ET.SubElement(answer, "Deleted"), "Key").text = found.text
        self._send_xml(answer)

    def log_message(self, *_: object) -> None:
        """Nothing: it would log every request."""

    def _dispatch(self, action: object) -> None:
        try:
            super()._dispatch(action)
        except FileNotFoundError:  # the folder of a key was removed with another, in this moment
            self._send_error(localbucket.S3Error(HTTPStatus.SERVICE_UNAVAILABLE, "SlowDown", "try again"))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    localbucket.S3Handler = Handler
    localbucket.main()
