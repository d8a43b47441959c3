"""gzip as a stream, however it is cut and however many members it has."""

import gzip
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.codecs.base import BLOCK_BYTES
from app.codecs.transport.encodings import Gunzip
from core.errors import InvalidDocuments


def given_to_zlib(members: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that zlib is given, which it may have to copy, for so many small members in one block."""
    total, made = 0, zlib.decompressobj

    class Counting:
        def __init__(self, bits: int) -> None:
            self._object = made(bits)

        def decompress(self, data: Any, most: int) -> bytes:
            nonlocal total
            total += len(data)
            return self._object.decompress(data, most)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._object, name)

    with monkeypatch.context() as patch:
        patch.setattr(zlib, "decompressobj", Counting)
        unpacked = b"".join(Gunzip(1 << 30).feed(gzip.compress(b"x", 1) * members))
    assert unpacked == b"x" * members
    return total


def test_small_members_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = given_to_zlib(1000, monkeypatch), given_to_zlib(8000, monkeypatch)
    assert many < 9 * few


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3 * BLOCK_BYTES // 2), st.booleans()), min_size=1, max_size=5),
    st.integers(1, 100_000),
)
def test_members_and_cuts_of_any_size(members: list[tuple[int, bool]], cut: int) -> None:
    parts = [(bytes(range(256)) * (size // 256 + 1))[:size] if varied else bytes(size) for size, varied in members]
    body = b"".join(gzip.compress(part, 1) for part in parts)
    unpacker = Gunzip(1 << 30)
    pieces = [piece for start in range(0, len(body), cut) for piece in unpacker.feed(body[start : start + cut])]
    unpacker.finish()
    assert b"".join(pieces) == b"".join(parts)
    assert max(map(len, pieces), default=0) <= BLOCK_BYTES


@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize("members", [1, 2])
def test_a_member_may_end_with_a_full_piece(pieces: int, members: int) -> None:
    body = gzip.compress(b"x" * (pieces * BLOCK_BYTES)) * members
    unpacker = Gunzip(1 << 30)
    assert sum(map(len, unpacker.feed(body))) == members * pieces * BLOCK_BYTES
    unpacker.finish()


@pytest.mark.parametrize(
    "body",
    [b"", gzip.compress(b"xy" * 1000)[:-1], gzip.compress(b"x") + b"y", b"plain"],
    ids=["empty", "cut", "more", "plain"],
)
def test_what_is_cut_short_or_no_gzip_is_refused(body: bytes) -> None:
    unpacker = Gunzip(1 << 30)
    with pytest.raises(InvalidDocuments):
        _all(unpacker, body)


def _all(unpacker: Gunzip, body: bytes) -> None:
    list(unpacker.feed(body))
    unpacker.finish()
