"""Texts of which a cluster counts the terms: a task counts a part, and stores its runs of counts; a task merges a bucket of all.

Tasks are pure functions of files in the store: what a dead worker had is counted again elsewhere, and stored under other keys.
"""

import mmap
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.text.batches import threads_for
from core.documents.text.counts import Frequencies
from core.documents.text.runs import Run, TermRun, WordCounts, WordRun, in_bucket, merged_terms, merged_words, term_runs, word_runs
from core.documents.text.words import Words
from workers.cluster.shards import local_file, opened_store
from workers.contract import File
from workers.store import Store
from workers.store.os_errors import translate_os_errors

_TABLES = 128 << 20
"""bytes of the tables of a task"""
_ALIGNED = 8
"""bytes of the largest numbers in a file"""


class Counting(NamedTuple):
    """What tasks that count have in common."""

    store_url: str
    prefix: str
    """of the keys of what they store"""
    multiplier: int
    """of the hashes"""
    n_buckets: int


def store_texts(store: Store, key: str, texts: TextRows) -> File:
    """Store texts for tasks."""
    first, last = int(texts.indptr[0]), int(texts.indptr[-1])
    return _stored(store, key, [texts.indptr - first, texts.data[first:last]])


def count_words(file: File, counting: Counting) -> File:
    """The runs of the words of texts, in a file."""
    texts, multiplier = _texts(counting.store_url, file), np.uint64(counting.multiplier)
    with closing(threads_for(texts, 1)) as team:
        return _store_runs(word_runs(texts, multiplier, _TABLES, team, lambda done, held: None), counting)


def count_terms(file: File, words: File, counting: Counting) -> File:
    """The runs of the terms of these words in texts, in a file."""
    texts, known = _texts(counting.store_url, file), _known(counting.store_url, words.model_dump_json())
    with closing(threads_for(texts, 1)) as team:
        return _store_runs(term_runs(texts, known, np.uint64(counting.multiplier), _TABLES, team, lambda done, held: None), counting)


def store_list(store: Store, key: str, files: Sequence[File]) -> File:
    """Store which files the tasks that merge are to read: there are as many tasks as buckets, and each would be sent all their records."""
    return store_texts(store, key, TextRows.of([file.model_dump_json() for file in files]))


def merge_words(bucket: int, files: File, counting: Counting, least: int) -> WordCounts:
    """The words of a bucket, of all texts, that occur in at least so many documents."""
    return merged_words(_bucket_of(files, counting, bucket, WordRun), least, lambda held: None)


def merge_terms(bucket: int, files: File, counting: Counting, least: int, most: int) -> Frequencies:
    """The terms of a bucket, of all texts, as core.documents.text.runs merges them."""
    return merged_terms(_bucket_of(files, counting, bucket, TermRun), np.uint64(counting.multiplier), least, most)


def _store_runs(runs: Iterable[Run], counting: Counting) -> File:
    """One file, of which a task that merges a bucket finds its part by the hashes, which ascend in each run."""
    key = f"{counting.prefix}/runs/{secrets.token_hex(4)}"
    return _stored(opened_store(counting.store_url), key, chain.from_iterable(runs))


def _bucket_of(files: File, counting: Counting, bucket: int, kind: type[Run]) -> list[Run]:
    """What the runs in the files of a list have in a bucket."""
    found = []
    for file in _listed(counting.store_url, files.model_dump_json()):
        arrays = _arrays(counting.store_url, file)
        while run := tuple(islice(arrays, len(kind._fields))):
            # copied, since a map keeps its file open, and files are many
            found.append(in_bucket(kind(*run), bucket, counting.n_buckets).copied())
    return found


@translate_os_errors("write", "the counts of terms")
def _stored(store: Store, key: str, arrays: Iterable[NDArray[Any]]) -> File:
    """Arrays in one file, each as in an .npy file, and aligned."""
    folder = store.staging()
    try:
        with (folder / "arrays").open("wb") as file:
            for array in arrays:
                npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
                file.write(np.ascontiguousarray(array).data)
                file.seek(-file.tell() % _ALIGNED, os.SEEK_CUR)
        return store.upload(key, folder / "arrays")
    finally:
        # the process of a worker goes on when a task has failed
        shutil.rmtree(folder, ignore_errors=True)


def _texts(url: str, file: File) -> TextRows:
    return TextRows(*_arrays(url, file))


def _arrays(url: str, file: File) -> Iterator[NDArray[Any]]:
    """The arrays of ``_stored``, mapped."""
    if not file.bytes:  # which cannot be mapped
        return
    with local_file(url, file).open("rb") as opened:
        held = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        while opened.tell() < file.bytes:
            npy.read_magic(opened)
            shape, _, dtype = npy.read_array_header_1_0(opened)
            array: NDArray[Any] = np.ndarray(shape, dtype, held, opened.tell())
            yield array
            opened.seek(array.nbytes, os.SEEK_CUR)
            opened.seek(-opened.tell() % _ALIGNED, os.SEEK_CUR)


@lru_cache(maxsize=1)
def _known(url: str, file: str) -> Words:
    """The words of a file, by its record: many tasks of a worker read by them."""
    return Words.of(_texts(url, File.model_validate_json(file)))


@lru_cache(maxsize=1)
def _listed(url: str, file: str) -> list[File]:
    """The files of a list, by its record: as ``_known``."""
    return [File.model_validate_json(record) for record in _texts(url, File.model_validate_json(file))]
