"""Vectors that encoders have made of texts, kept beside the dataset of the texts.

datasets/{documents}/encodings/{encoder}/{id}.json  the record of a file of vectors: with it they are kept
datasets/{documents}/encodings/{encoder}/{id}.npy   of each text the first 16 bytes of its SHA-256, and its vector in
                                                    float16

A vector belongs to a text, not to a place: those of a relabeled, an appended or a repeated dataset are found again.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import translate_os_errors
from storage.names import is_id, new_id
from storage.records import File, Record
from storage.repositories.datasets.files.npy import NpyWriter, open_array
from storage.store import KeyMissing, Store, json_records, staging_folder


class Encoding(Record):
    """Vectors of texts by one encoder: ``datasets/{documents}/encodings/{encoder}/{id}.json``."""

    file: File


_KEPT_SECONDS = 5.0
"""seconds of work that are lost at most when a worker is killed"""
_SEARCHED = 16
"""the newest datasets whose vectors are looked through for those that a dataset lacks"""
_DIGEST_BYTES = 16


def digest_of(text: str) -> bytes:
    """Name of a text."""
    return sha256(text.encode()).digest()[:_DIGEST_BYTES]


class KeptVectors:
    """The vectors that one encoder has made of texts.

    As a context it keeps what was added, at its end at the latest.
    """

    def __init__(self, store: Store, documents: str, encoder: str) -> None:
        """``documents`` is the id of the dataset by which vectors are kept, ``encoder`` the digest of the encoder."""
        self._store, self._documents, self._encoder = store, documents, encoder
        self._added: list[NDArray[np.uint8]] = []
        self._kept_at = time.monotonic()

    def __enter__(self) -> "KeptVectors":
        self._kept_at = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._keep()

    def find(self, wanted: Iterable[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """The vectors of texts by their digests, where they are kept by this dataset."""
        return self._found(wanted, [self._documents])

    def adopt(self, wanted: Iterable[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """The vectors of texts by their digests, where one of the newest datasets keeps them; this one keeps them now,
        too.
        """
        others = [id for id in self._store.children("datasets") if is_id("ds", id) and id != self._documents]
        found = self._found(wanted, others[: -_SEARCHED - 1 : -1])
        if found:
            self.add(found)
        return found

    def _found(self, wanted: Iterable[bytes], datasets: Iterable[str]) -> dict[bytes, NDArray[np.float16]]:
        left, found = set(wanted), dict[bytes, NDArray[np.float16]]()
        for records in chain.from_iterable(map(self._files, datasets)):
            if not left:
                break
            content = records[:, :_DIGEST_BYTES].tobytes()
            digests = (content[start : start + _DIGEST_BYTES] for start in range(0, len(content), _DIGEST_BYTES))
            places = {digest: place for place, digest in enumerate(digests) if digest in left}
            vectors = np.ascontiguousarray(records[list(places.values()), _DIGEST_BYTES:]).view("<f2")
            found |= dict(zip(places, vectors, strict=True))
            left -= places.keys()
        return found

    def add(self, vectors: Mapping[bytes, NDArray[Any]]) -> None:
        """Keep vectors of texts, by their digests, sooner or later."""
        digests = np.frombuffer(b"".join(vectors), np.uint8).reshape(-1, _DIGEST_BYTES)
        self._added.append(np.hstack([digests, np.array(list(vectors.values()), "<f2").view(np.uint8)]))
        if time.monotonic() - self._kept_at > _KEPT_SECONDS:
            self._keep()

    @translate_os_errors("write", "the vectors of texts")
    def _keep(self) -> None:
        if not self._added:
            return
        key, records = f"{self._folder(self._documents)}/{new_id('vectors')}", np.concatenate(self._added)
        kind = f"V{records.shape[1]}"
        with staging_folder(self._store) as folder, NpyWriter(folder / "vectors.npy", kind) as file:
            file.append(records.view(kind).ravel())
            stored = self._store.upload(f"{key}.npy", file.finish())
        json_records.create(self._store, f"{key}.json", Encoding(file=stored))
        self._added, self._kept_at = [], time.monotonic()

    def _files(self, documents: str) -> Iterator[NDArray[np.uint8]]:
        """The kept records of a dataset, each with a row a text."""
        folder = self._folder(documents)
        for name in self._store.children(folder):
            record = json_records.find(self._store, f"{folder}/{name}", Encoding) if name.endswith(".json") else None
            if record is not None:
                with suppress(KeyMissing):  # the dataset was deleted meanwhile
                    records = open_array(self._store.local(record.file))
                    yield records.view(np.uint8).reshape(len(records), -1)

    def _folder(self, documents: str) -> str:
        return f"datasets/{documents}/encodings/{self._encoder}"
