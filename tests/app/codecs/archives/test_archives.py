"""Archives of text files: folders are labels, and other files are left out or refused by name."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from app.codecs.base import Bounds
from app.codecs.dispatch import body_decoder
from app.errors import UnsupportedMediaType
from core.documents.kinds import TextRows
from core.errors import HalfmoonError, InvalidDocuments
from storage.errors import LimitExceeded
from tests.app.codecs.encodings import Files, tar_of, zip_of

BOUNDS = Bounds(body_bytes=10**7, decompressed_bytes=10**6, document_bytes=5000, documents=1000, nonzeros=1000)
Pack = Callable[[Files], bytes]


PACKED: list[tuple[str, Pack]] = [
    ("application/zip", zip_of),
    ("application/x-tar", lambda files: tar_of(files, tarfile.PAX_FORMAT)),
    ("application/x-tar", tar_of),
    ("application/gzip", lambda files: gzip.compress(tar_of(files))),
]
EVERY = pytest.mark.parametrize(("media_type", "pack"), PACKED, ids=["zip", "pax", "gnu", "gzip"])


def read(body: bytes, media_type: str, size: int = 10**6, charset: str = "") -> tuple[list[tuple[Any, ...]], list[str]]:
    """Id, label and text of each document of a body in pieces of this size, and the warnings."""
    decoder = body_decoder({"content-type": media_type + (f";charset={charset}" if charset else "")}, BOUNDS)
    batches = [batch for at in range(0, len(body), size) for batch in decoder.feed(body[at : at + size])] + list(
        decoder.finish()
    )
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        assert isinstance(batch.rows, TextRows)
        found += zip(batch.ids or [], batch.labels, batch.rows, strict=True)
    return found, list(decoder.warnings())


@EVERY
@pytest.mark.parametrize("size", [100, 10**6])
def test_folders_are_labels(media_type: str, pack: Pack, size: int) -> None:
    long = "x" * 120 + ".txt"
    files = {
        "news/sport/a.txt": "Käse".encode(),
        f"news/politics/{long}": b"vote",
        "news/Unlabeled/b.txt": b"",
        "./top.txt": b"\xff\xfea\0",
        "__MACOSX/._a": b"\0",
    }
    found, warnings = read(pack(files), media_type, size)
    assert found == [
        ("news/sport/a.txt", "sport", "Käse"),
        (f"news/politics/{long}", "politics", "vote"),
        ("news/Unlabeled/b.txt", None, ""),
        ("top.txt", None, "a"),
    ]
    assert warnings == ["1 entries of the archive are no text files, such as links and hidden files"]


@EVERY
def test_texts_beside_folders_are_pointed_out(media_type: str, pack: Pack) -> None:
    _, warnings = read(pack({"news/a.txt": b"a", "news/sport/b.txt": b"b"}), media_type)
    assert warnings == [
        "files directly in 'news' have it as their label, and there are folders in it; if they have no "
        "label, put them into a folder called unlabeled"
    ]


@EVERY
def test_many_files_come_in_batches(media_type: str, pack: Pack) -> None:
    files = {f"c{k % 3}/{k}.txt": b"x" * 500 for k in range(600)}
    assert [id for id, *_ in read(pack(files), media_type)[0]] == list(files)


def test_another_encoding() -> None:
    body = zip_of({"a/b.txt": "Käse".encode("cp1252")})
    assert read(body, "application/zip", charset="windows-1252")[0][0][2] == "Käse"
    with pytest.raises(UnsupportedMediaType, match="charset 'bz2'"):
        read(body, "application/zip", charset="bz2")


def test_a_file_of_a_zip_without_a_name_is_no_document() -> None:
    """zipfile ends a name at the first zero byte."""
    body = zip_of({"a/x.txt": b"some text", "nameless": b"more"}).replace(b"nameless", b"\0ameless")
    assert [text for _, _, text in read(body, "application/zip")[0]] == ["some text"]


def test_links_and_folders_of_a_tar_are_no_documents() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind in (
            ("folder", tarfile.DIRTYPE),
            ("folder/link", tarfile.SYMTYPE),
            ("folder/device", tarfile.CHRTYPE),
        ):
            header = tarfile.TarInfo(name)
            header.type, header.linkname = kind, "/etc/passwd"
            archive.addfile(header)
        header = tarfile.TarInfo("folder/a.txt")
        header.size = 1
        archive.addfile(header, io.BytesIO(b"a"))
    found, warnings = read(file.getvalue(), "application/x-tar", 100)
    assert found == [("folder/a.txt", "folder", "a")]
    assert warnings[0].startswith("2 entries")


def encrypted() -> bytes:
    body = bytearray(zip_of({"a/b.txt": b"x"}))
    body[body.index(b"PK\x01\x02") + 8] |= 1
    return bytes(body)


REFUSED: dict[str, tuple[str, bytes, type[HalfmoonError], str]] = {
    "no zip": ("application/zip", b"text", InvalidDocuments, "not a zip file, or cut short"),
    "no tar": (
        "application/x-tar",
        b"x" * 600,
        InvalidDocuments,
        "this is no tar archive; send a compressed table or lines with their own Content-Type",
    ),
    "nothing": ("application/x-tar", b"", InvalidDocuments, "this is no tar archive"),
    "a table in gzip": (
        "application/gzip",
        gzip.compress(b"text\na\n" * 200),
        InvalidDocuments,
        "this is no tar archive",
    ),
    "no gzip": ("application/gzip", tar_of({"a": b"b"}), InvalidDocuments, "not gzip, or damaged"),
    "cut short": (
        "application/x-tar",
        tar_of({"a/b": b"c" * 600})[:1300],
        InvalidDocuments,
        "the archive is cut short",
    ),
    "no text": (
        "application/zip",
        zip_of({"a/b.pdf": b"%PDF\0"}),
        InvalidDocuments,
        "the file 'a/b.pdf': is no text file; leave it out",
    ),
    "latin": (
        "application/zip",
        zip_of({"a/b": b"K\xe4se"}),
        InvalidDocuments,
        "the byte 0xe4 at 1 is not UTF-8; save the files in UTF-8, or say what they are in",
    ),
    "a way out": (
        "application/x-tar",
        tar_of({"../b": b"x"}),
        InvalidDocuments,
        "the file '../b': leads out of the archive",
    ),
    "a long path": (
        "application/zip",
        zip_of({"a/" + "b" * 255: b"x"}),
        InvalidDocuments,
        "is a path of more than 256 characters, and the path is the id",
    ),
    "a large file": ("application/zip", zip_of({"a/b": b"x" * 5001}), LimitExceeded, "bytes in the file 'a/b'"),
    "a bomb": (
        "application/zip",
        zip_of({f"a/{k}": b"x" * 5000 for k in range(201)}),
        LimitExceeded,
        "bytes in the files of the archive",
    ),
    "a bomb of gzip": (
        "application/gzip",
        gzip.compress(bytes(10**7)[: 10**6] + b"x" * 10**6),
        LimitExceeded,
        "bytes in the decompressed body",
    ),
    "encrypted": (
        "application/zip",
        encrypted(),
        InvalidDocuments,
        "is encrypted; send the archive without a password",
    ),
    "another method": (
        "application/zip",
        zip_of({"a/b": b"x"}, zipfile.ZIP_BZIP2),
        InvalidDocuments,
        "by a method other than deflate",
    ),
    "a workbook": (
        "application/zip",
        zip_of({"[Content_Types].xml": b"<"}),
        InvalidDocuments,
        "a document of an office program; a workbook is sent under its name in .xlsx",
    ),
    "arrays": (
        "application/zip",
        zip_of({"X.npy": b"x"}),
        InvalidDocuments,
        "is an array of NumPy; send a file of arrays as application/x-npz",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_archives_that_are_refused(name: str) -> None:
    media_type, body, kind, detail = REFUSED[name]
    for size in (500, 10**8):
        with pytest.raises(kind) as refusal:
            read(body, media_type, size)
        assert detail in str(refusal.value)


def test_a_long_header_is_refused() -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    with pytest.raises(InvalidDocuments, match="a header of the archive has more than 65536 bytes"):
        read(header.tobuf(tarfile.USTAR_FORMAT), "application/x-tar")


def test_a_directory_that_would_not_fit_into_memory_is_refused() -> None:
    body = bytearray(zip_of({"a/b": b"x"}))
    at = body.rindex(b"PK\x05\x06") + 12
    body[at : at + 4] = (9 << 20).to_bytes(4, "little")
    with pytest.raises(InvalidDocuments, match="more than some 80,000 files; send a tar archive"):
        read(bytes(body), "application/zip")
