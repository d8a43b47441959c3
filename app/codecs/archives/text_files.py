"""Text files of an archive as documents: the folder of a file is its label, its path the id."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from app.codecs.base import Bounds, check_limit
from core.documents.kinds import TextRows
from core.errors import Fault, invalid_documents
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
                "say what the files are in, as by ;charset=windows-1252 behind the Content-Type, and leave out "
                "what is no text"
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
        return invalid_documents([Fault(str(self._count) if name else "", "text" if name else "", f"{where}{detail}")])


def _path(name: str) -> PurePosixPath:
    """A path of an archive without the names of the folder itself."""
    return PurePosixPath(*(part for part in name.replace("\\", "/").split("/") if part not in ("", ".")))
