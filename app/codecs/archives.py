"""``application/zip``, ``application/x-tar`` and ``application/gzip``: text files in folders as documents.

The folder of a file is its label, its path the id.
A tar archive is read as a stream, whose headers tarfile parses; a zip archive when it is whole.
"""

import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from app.codecs.base import Bounds, Decoder, Format, Reading, check_limit
from app.codecs.transport.encodings import Filtered, Gunzip, encoding_of
from app.codecs.transport.whole_body import WholeBodyDecoder, check_directory, zip_errors
from core.documents.kinds import TextRows
from core.errors import Fault, invalid_documents, refused
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT, Label
from storage.repositories.datasets import Batch

UNLABELED = ("unlabeled", "unlabelled", "unsup")
"""Folders of files without a label, in lower case."""
_BATCH_BYTES = 256 << 10
_BATCH_FILES = 1000
_MOST_FOLDERS = 10_000
"""Folders that are remembered, to find those that hold both texts and classes."""
_SYSTEM = ("__macosx", "thumbs.db", "desktop.ini")
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_SHOWN = 100
_OFFICE = "[Content_Types].xml"


class TextFiles:
    """Collects the files of an archive in batches. Memory holds one batch."""

    def __init__(self, bounds: Bounds, encoding: str) -> None:
        self._bounds = bounds
        self._encoding = encoding
        self._texts: list[str] = []
        self._labels: list[Label | None] = []
        self._ids: list[str | None] = []
        self._size = 0
        self._bytes = 0
        self._count = 0
        self._n_others = 0
        self._folders: set[PurePosixPath] = set()

    def wants(self, name: str, size: int, *, plain: bool = True) -> bool:
        """Whether a file is a document; files of the system and other than ``plain`` ones are not.

        Raises InvalidDocuments, LimitExceeded.
        """
        path = _path(name)
        if path.name == _OFFICE:
            raise self._refused(
                "",
                "this is a document of an office program; a workbook is sent under its name in .xlsx, another table "
                "saved as CSV",
            )
        if path.suffix == ".npy":
            raise self._refused(name, "is an array of NumPy; send a file of arrays as application/x-npz")
        if (
            not plain
            or not path.name
            or any((part.startswith(".") and part != "..") or part.lower() in _SYSTEM for part in path.parts)
        ):
            self._n_others += 1
            return False
        if ".." in path.parts:
            raise self._refused(name, "leads out of the archive; its paths must not have ..")
        if len(str(path)) > MAX_TEXT:
            raise self._refused(
                name,
                f"is a path of more than {MAX_TEXT} characters, and the path is the id; shorten names of files or "
                "folders",
            )
        if size > self._bounds.document_bytes:
            raise LimitExceeded(
                f"bytes in the file {name[:_SHOWN]!r}",
                self._bounds.document_bytes,
                "have HALFMOON_MAX_DOCUMENT_BYTES raised",
            )
        self._bytes += size
        check_limit(self._bytes, "bytes in the files of the archive", self._bounds.decompressed_bytes)
        return True

    def add(self, name: str, content: bytes) -> None:
        """Add a file that is wanted; raises InvalidDocuments for one that is no text."""
        path = _path(name)
        encoding = next((encoding for mark, encoding in _MARKS.items() if content.startswith(mark)), self._encoding)
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as error:
            advice = (
                "save the files in UTF-8, or say what they are in, as by ;charset=windows-1252 behind the "
                "Content-Type, and leave out what is no text"
            )
            raise self._refused(
                name, f"the byte 0x{content[error.start]:02x} at {error.start} is not {encoding.upper()}; {advice}"
            ) from None
        if "\0" in text:
            raise self._refused(name, "is no text file; leave it out of the archive, or turn it into text first")
        self._texts.append(text)
        self._labels.append(None if path.parent.name.lower() in ("", *UNLABELED) else path.parent.name)
        self._ids.append(str(path))
        self._size += len(content)
        self._count += 1
        if len(self._folders) < _MOST_FOLDERS:
            self._folders.add(path.parent)

    def batches(self, *, last: bool = False) -> Iterator[Batch]:
        """The files since the last batch, once they are enough for one."""
        enough = last or self._size >= _BATCH_BYTES or len(self._texts) >= _BATCH_FILES
        if enough and self._texts:
            found = Batch(TextRows.of(self._texts), self._labels, self._ids)
            self._texts, self._labels, self._ids, self._size = [], [], [], 0
            yield found

    def warnings(self) -> list[str]:
        """Notes for the sender: files that were left out, and folders that hold both texts and classes."""
        found = (
            [f"{self._n_others} entries of the archive are no text files, such as links and hidden files"]
            if self._n_others
            else []
        )
        inner = {parent for folder in self._folders for parent in folder.parents}
        mixed = sorted(
            str(folder) for folder in self._folders & inner if folder.name and folder.name.lower() not in UNLABELED
        )
        if mixed:
            found.append(
                f"files directly in {mixed[0][:_SHOWN]!r} have it as their label, and there are folders in it; "
                "if they have no label, put them into a folder called unlabeled"
            )
        return found

    def _refused(self, name: str, detail: str) -> Exception:
        where = f"the file {name[:_SHOWN]!r}: " if name else ""
        return invalid_documents([Fault(self._count if name else "", "text" if name else "", f"{where}{detail}")])


def _path(name: str) -> PurePosixPath:
    """A path of an archive without the names of the folder itself."""
    return PurePosixPath(*(part for part in name.replace("\\", "/").split("/") if part not in ("", ".")))


_BLOCK = tarfile.BLOCKSIZE
_LONGEST_NAME = 64 << 10
"""Bytes of the headers that hold long names."""
_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE)
_PATH = re.compile(rb"(?:^|\n)\d+ path=([^\n]*)\n")
_NO_TAR = (
    "this is no tar archive; send a compressed table or lines with their own Content-Type and Content-Encoding: gzip"
)
_Member = tuple[tarfile.TarInfo, bool]
"""An entry, and whether its bytes are wanted."""


class TarDecoder(Decoder):
    """Cuts the bytes into headers and files, each as it is whole."""

    def __init__(self, reading: Reading) -> None:
        self._files = TextFiles(reading.bounds, encoding_of(reading.parameters.get("charset")))
        self._rest = bytearray()
        self._member: _Member | None = None
        self._skipped = 0
        """Bytes that are still to be left out."""
        self._name = ""
        """Name of the next file, where a header before it has it."""
        self._begun = self._ended = False

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        if self._ended:
            return
        self._rest += data
        done = 0
        while not self._ended and (end := self._step(done)) is not None:
            done = end
            yield from self._files.batches()
        del self._rest[:done]

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        if not self._begun:
            raise refused(_NO_TAR)
        if not self._ended and (self._rest or self._member or self._skipped):
            raise refused("the archive is cut short")
        yield from self._files.batches(last=True)

    def warnings(self) -> Sequence[str]:
        """See Decoder: the files that were left out."""
        return self._files.warnings()

    def _step(self, at: int) -> int | None:
        """Take one piece from this position on, and return its end; None if more bytes are needed."""
        left = len(self._rest) - at
        if self._skipped:
            taken = min(left, self._skipped)
            self._skipped -= taken
            return at + taken if taken else None
        if self._member is None:
            if left < _BLOCK:
                return None
            self._begin(bytes(self._rest[at : at + _BLOCK]))
            return at + _BLOCK
        header, wanted = self._member
        if left < _padded(header.size):
            return None
        content = bytes(self._rest[at : at + header.size])
        self._member = None
        if wanted:
            self._files.add(self._name or header.name, content)
            self._name = ""
        elif header.type == tarfile.GNUTYPE_LONGNAME:
            self._name = content.rstrip(b"\0").decode(errors="replace")
        else:
            found = _PATH.search(content)
            self._name = found[1].decode(errors="replace") if found else ""
        return at + _padded(header.size)

    def _begin(self, block: bytes) -> None:
        if not block.strip(b"\0"):
            self._ended = self._begun = True
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
        except tarfile.HeaderError as error:
            raise refused(f"the archive is damaged: {error}" if self._begun else _NO_TAR) from None
        self._begun = True
        if header.size < 0:
            raise refused("the archive is damaged: a negative size")
        if header.type in _EXTENDED:
            if header.size > _LONGEST_NAME:
                raise refused(f"a header of the archive has more than {_LONGEST_NAME} bytes")
            self._member = header, False
        elif header.type == tarfile.XGLTYPE:
            self._skipped = _padded(header.size)
        elif header.isdir():
            self._skipped, self._name = 0, ""
        elif self._files.wants(
            self._name or header.name, header.size, plain=header.type in tarfile.REGULAR_TYPES and not header.issparse()
        ):
            self._member = header, True
        else:
            self._skipped, self._name = _padded(header.size) if header.isreg() else 0, ""


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


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


def _format(
    media_type: str,
    decoder: Callable[[Reading], Decoder],
    what: str,
    aliases: tuple[str, ...],
    endings: tuple[str, ...],
    *,
    compressed: bool = True,
) -> Format:
    description = (
        f"{what} of text files. The folder of a file is its label, unless it is called unlabeled; its path is the id."
    )
    schema = {"schema": {"type": "string", "format": "binary", "description": description}}
    return Format(media_type, decoder, schema, compressed, aliases, endings=endings)


ZIP = _format(
    "application/zip",
    ZipDecoder,
    "A zip archive",
    ("application/x-zip-compressed", "application/x-zip"),
    ("zip",),
)
TAR = _format("application/x-tar", TarDecoder, "A tar archive", ("application/tar",), ("tar",), compressed=False)
GZIPPED = _format(
    "application/gzip",
    lambda reading: Filtered(Gunzip(reading.bounds.decompressed_bytes, reading.reserve), TarDecoder(reading)),
    "A tar archive, compressed by gzip,",
    ("application/x-gzip", "application/x-gtar", "application/x-compressed-tar"),
    ("tgz", "gz"),
)
