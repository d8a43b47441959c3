"""``application/zip``: text files in folders."""

import zipfile
from collections.abc import Iterator, Sequence

from app.codecs.archives.text_files import TextFiles
from app.codecs.base import Format, Reading
from app.codecs.transport.encodings import encoding_of
from app.codecs.transport.whole_body import WholeBodyDecoder, check_directory, zip_errors
from core.errors import refused
from storage.repositories.datasets import Batch

_DIRECTORY_BYTES = 8 << 20
"""Bytes of the directory, which is read into memory: some 80,000 files."""
_ENCRYPTED = 1


class ZipDecoder(WholeBodyDecoder):
    """Reads a file after the other, when the body is whole."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self._files = TextFiles(reading.bounds, encoding_of(reading.parameters.get("charset")))

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        file = self.body()
        with zip_errors("not a readable zip"):
            check_directory(
                file, _DIRECTORY_BYTES, "has more than some 80,000 files; send a tar archive, which is read as a stream"
            )
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist():
                    # an entry may have no name, which zipfile's own question does not expect
                    if not info.filename.endswith("/") and self._files.wants(info.filename, info.file_size):
                        self._files.add(info.filename, self._content(archive, info))
                    yield from self._files.batches()
        yield from self._files.batches(last=True)

    def warnings(self) -> Sequence[str]:
        """See Decoder: the files that were left out."""
        return self._files.warnings()

    def _content(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        fault = ""
        if info.flag_bits & _ENCRYPTED:
            fault = "is encrypted; send the archive without a password"
        elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            fault = "is compressed by a method other than deflate; make the archive anew, as by zip -r"
        if fault:
            raise refused(f"the file {info.filename[:100]!r} {fault}")
        with archive.open(info) as stream:
            # one byte more: zipfile compares the checksum at the end
            return stream.read(info.file_size + 1)


FORMAT = Format(
    "application/zip",
    ZipDecoder,
    {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "A zip archive of text files. The folder of a file is its label, unless it is called "
            "unlabeled; its path is the id.",
        }
    },
    compressed=True,
    aliases=("application/x-zip-compressed", "application/x-zip"),
    endings=("zip",),
)
