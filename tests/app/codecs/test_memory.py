"""Decoders and tensors hold no more than their reservation, the body, and some blocks."""

import gzip
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec
import numpy as np
import pytest

from app.codecs.base import Bounds, in_blocks
from app.codecs.dispatch import body_decoder, decompressor_of
from app.codecs.transport.encodings import filtered
from app.inference.tensors import _NUMBERS, documents_of
from app.predictions.service import decode_documents
from core.errors import InvalidDocuments
from storage.repositories.datasets.files.ids import IdWriter
from storage.repositories.datasets.files.votes import VotesWriter
from storage.repositories.datasets.labels import Classes
from tests.app.codecs.encodings import as_npy, npz, tar_of, zip_of
from tests.app.codecs.good_bodies import CONTENT_TYPES
from tests.memory import measured

BOUNDS = Bounds(1 << 26, 1 << 26, 1 << 24, 1 << 20, 1 << 25)
SOME_BLOCKS = 24 << 20
"""bytes of the blocks that are parsed at a time, as Python's values"""
SIZE = 1 << 21


@pytest.mark.parametrize("datatype", [*_NUMBERS, "JSON"])
def test_tensors_hold_no_more_than_they_reserve(datatype: str) -> None:
    """A matrix without zeros, which has an index for each value in memory."""
    kind = "FP32" if datatype == "JSON" else datatype
    numbers = np.ones(8 * SIZE if datatype != "JSON" else SIZE, _NUMBERS[kind])
    tensor = {"name": "X", "shape": [len(numbers) // 64, 64], "datatype": kind}
    data = b"" if datatype == "JSON" else numbers.tobytes()
    form = {"data": [1] * len(numbers)} if datatype == "JSON" else {"parameters": {"binary_data_size": len(data)}}
    inputs = msgspec.Raw(json.dumps([tensor | form]).encode())
    bounds = Bounds(1 << 30, 1 << 30, 1 << 24, 1 << 20, 1 << 25)
    with measured() as memory:
        (rows,) = [each for each in documents_of(inputs, bounds, memory.reserve, data) if each is not None]
    assert rows.n_rows == len(numbers) // 64
    assert memory.peak <= memory.reserved + SOME_BLOCKS


BODIES: dict[str, Callable[[], bytes]] = {
    "application/json": lambda: b'{"documents":[' + b'{"text":"some words here"},' * (SIZE // 26) + b'{"text":""}]}',
    "application/x-ndjson": lambda: b'{"indices":[1,2,3],"label":"a"}\n' * (SIZE // 32),
    "text/csv": lambda: b"text,label\n" + b"some words here,a\n" * (SIZE // 18),
    "text/tab-separated-values": lambda: b"text\tlabel\n" + b"some words here\ta\n" * (SIZE // 18),
    "text/x-svmlight": lambda: b"1 1:1 2:2 3:3\n" * (SIZE // 14),
    "application/x-npz": lambda: npz({"X": np.ones((SIZE // 256, 64), np.float32)}),
    "application/x-npy": lambda: as_npy(np.ones((SIZE // 64, 64), np.int8)),
    "application/zip": lambda: zip_of({f"a/{k}.txt": b"x" * 1000 for k in range(SIZE // 1000)}),
    "application/x-tar": lambda: tar_of({f"a/{k}.txt": b"x" * 500 for k in range(SIZE // 1024)}),
    "multipart/form-data": lambda: (
        b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.csv"\r\n\r\ntext\n'
        + b"some words here\n" * (SIZE // 16)
        + b"\r\n--x--\r\n"
    ),
}


@pytest.mark.parametrize("media_type", BODIES)
def test_decoders_hold_no_more_than_they_reserve(media_type: str) -> None:
    body = BODIES[media_type]()
    headers = {"content-type": CONTENT_TYPES.get(media_type, media_type)}
    with measured() as memory:
        n_rows = sum(batch.rows.n_rows for batch in decode_documents(in_blocks(body), headers, BOUNDS, memory.reserve))
    assert n_rows > 1_000
    assert memory.peak <= memory.reserved + len(body) + SOME_BLOCKS


@pytest.mark.parametrize("order", ["coordinates", "columns"])
@pytest.mark.parametrize("spooled", [True, False])
def test_entries_in_another_order_take_no_memory_that_is_not_reserved(spooled: bool, order: str) -> None:
    """A million documents, of which few have an entry: where there are files, they have all but some slices."""
    n, n_entries = 1 << 20, 1 << 19
    places: dict[str, Any] = {"row": np.arange(n_entries)[::-1], "col": np.zeros(n_entries, np.int32)}
    if order == "columns":
        places = {"format": np.array(b"csc"), "indptr": np.array([0, n_entries]), "indices": places["row"]}
    body = npz({**places, "data": np.ones(n_entries, np.float32), "shape": [n, 1]})
    headers = {"content-type": "application/x-npz"}
    with measured() as memory, ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(4 * spooled)]
        decoder = body_decoder(headers, BOUNDS, iter([*files, *[None] * 4]).__next__, memory.reserve)
        assert sum(batch.rows.n_rows for batch in decoder.read(in_blocks(body))) == n
        # a page without a block would end the process where the disk is full
        assert all(os.fstat(file.fileno()).st_blocks * 512 >= os.fstat(file.fileno()).st_size for file in files)
    assert memory.peak < memory.reserved + len(body) + (SOME_BLOCKS >> 1)


@pytest.mark.parametrize("n_ids", [1, 500_000])
def test_ids_are_compared_in_memory_that_does_not_grow(tmp_path: Path, n_ids: int) -> None:
    """A million documents of which each id occurs again, the one id of all of them or another one each."""
    writer, ids = IdWriter(tmp_path), [f"id{number % n_ids}" for number in range(1_000_000)]
    for start in range(0, len(ids), 10_000):
        writer.append(ids[start : start + 10_000], 10_000)
    with measured() as memory, pytest.raises(InvalidDocuments, match=f"again by document number {n_ids + 1}$"):
        writer.seal()
    assert memory.peak < 24 << 20


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_whole_body_is_held_once(encoding: str) -> None:
    body = b'{"model":"m","options":{"a":[' + b"0," * (8 * SIZE) + b"0]}}"
    with measured() as memory:
        sent = gzip.compress(body, 1) if encoding == "gzip" else body
        blocks = [sent[at : at + (1 << 15)] for at in range(0, len(sent), 1 << 15)]
        del sent
        whole = filtered(blocks, decompressor_of({"content-encoding": encoding}, BOUNDS, memory.reserve))
    assert whole == body
    assert memory.peak < 1.2 * len(body) + (SOME_BLOCKS >> 3)


def test_voters_take_memory_by_classes_alone(tmp_path: Path) -> None:
    classes, votes = [f"c{number}" for number in range(300)], Classes(1000)
    with ExitStack() as stack, measured() as memory:
        writer = VotesWriter(tmp_path, 1000, stack)
        for voter in range(300):
            writer.append([{f"v{voter}": dict.fromkeys(classes, 0.5)}], votes, 1)
    assert writer.classes == set(range(300))
    assert writer.lonely() == {}
    assert memory.peak < 2 << 20
