"""Documents like text for the service's benchmarks: 76 of 47,000 features each, common features far more often than
rare ones.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

FEATURES = 47_000
NONZEROS = 76
_DECAY = 0.8


class Documents(NamedTuple):
    """Arrays of shape (n_documents, NONZEROS): indices ascending by row."""

    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indices)


@cache
def documents(count: int, seed: int = 0) -> Documents:
    rng = np.random.default_rng(seed)
    logs = np.log(np.arange(1, FEATURES + 1)) * _DECAY
    names = rng.permutation(FEATURES).astype(np.int32)
    # the smallest of exponential variables divided by the shares are a weighted sample without repetition
    chosen = [
        np.argpartition(logs + np.log(rng.exponential(size=FEATURES)), NONZEROS)[:NONZEROS]
        for _ in range(min(count, 1000))
    ]
    rows = names[np.array(chosen)]
    # more than these are the same rows with other values under other numbers
    repeats = -(-count // len(rows))
    shifted = np.concatenate([(rows + 37 * turn) % FEATURES for turn in range(repeats)])[:count]
    return Documents(
        np.sort(shifted, axis=1).astype(np.int32), np.round(rng.random((count, NONZEROS)), 6).astype(np.float32)
    )


def weights() -> NDArray[np.float64]:
    """shape (FEATURES,): the linear model that the labels come from."""
    return np.random.default_rng(1).standard_normal(FEATURES)


def labels_of(given: Documents) -> list[str]:
    return ["sport" if score > 0 else "news" for score in (weights()[given.indices] * given.values).sum(axis=1)]


def as_json(given: Documents) -> bytes:
    return b'{"documents":[' + b",".join(_texts(given)) + b"]}"


def as_ndjson(given: Documents) -> bytes:
    return b"\n".join(_texts(given)) + b"\n"


def as_svmlight(given: Documents) -> bytes:
    lines = []
    for indices, values in zip(given.indices.tolist(), given.values.tolist(), strict=True):
        lines.append("0 " + " ".join(f"{index + 1}:{value:.6g}" for index, value in zip(indices, values, strict=True)))
    return ("\n".join(lines) + "\n").encode()


def as_csv(given: Documents) -> bytes:
    """Texts of words that are named after the features, in quotes, as spreadsheets write them; without the line that
    names the column.
    """
    return "".join(
        '"' + ", ".join(f"w{index}" for index in indices) + '"\r\n' for indices in given.indices.tolist()
    ).encode()


def as_npz(given: Documents, labels: list[str] | None = None) -> bytes:
    target = io.BytesIO()
    write_npz(target, given, 1, labels)
    return target.getvalue()


def write_npz(target: IO[bytes], given: Documents, repeats: int, labels: list[str] | None = None) -> None:
    """The documents so many times over as an uncompressed npz, made as it is written: no memory is needed for it."""
    count = len(given) * repeats
    with zipfile.ZipFile(target, "w") as archive:
        _member(archive, "format", np.array(b"csr"), None)
        _member(archive, "indptr", np.arange(0, NONZEROS * count + 1, NONZEROS), 1)
        _member(archive, "indices", given.indices.ravel(), repeats)
        _member(archive, "data", given.values.ravel(), repeats)
        _member(archive, "shape", np.array([count, FEATURES]), 1)
        if labels is not None:
            _member(archive, "labels", np.array(labels), repeats)


def _member(archive: zipfile.ZipFile, name: str, array: NDArray[Any], repeats: int | None) -> None:
    """An array, so many times over; None for one without dimensions."""
    shape = () if repeats is None else (len(array) * repeats,)
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array_header_1_0(member, {"descr": array.dtype.str, "fortran_order": False, "shape": shape})
        data = array.tobytes()
        for _ in range(repeats or 1):
            member.write(data)


def _texts(given: Documents) -> Iterator[bytes]:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for indices, values in zip(
        given.indices.tolist(), np.round(given.values.astype(np.float64), 6).tolist(), strict=True
    ):
        yield encode({"indices": indices, "values": values}).encode()
