"""Texts of which a cluster counts the terms: a task counts a part, and stores its runs of counts; a task merges a bucket of all.

Tasks are pure functions of files in the store: what a dead worker had is counted again elsewhere, and stored under other keys.
"""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.text.batches import threads_for
from core.documents.text.counts import Frequencies
from core.documents.text.runs import TermRun, WordCounts, WordRun, bounds, merged_terms, merged_words, term_runs, word_runs
from core.documents.text.words import Words
from workers.cluster.shards import local_file, opened_store
from workers.contract import File
from workers.store import Store
from workers.store.os_errors import translate_os_errors

_TABLES = 128 << 20
"""bytes of the tables of a task"""
_Run = TypeVar("_Run", WordRun, TermRun)


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
    return _stored(store, key, {"indptr": texts.indptr - first, "letters": texts.data[first:last]})


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


def merge_words(bucket: int, files: Sequence[File], counting: Counting, least: int) -> WordCounts:
    """The words of a bucket, of all texts, that occur in at least so many documents."""
    runs = [run for file in files for run in _runs(counting.store_url, file, bucket, WordRun)]
    return merged_words(runs, least, lambda held: None)


def merge_terms(bucket: int, files: Sequence[File], counting: Counting, least: int, most: int) -> Frequencies:
    """The terms of a bucket, of all texts, as core.documents.text.runs merges them."""
    runs = [run for file in files for run in _runs(counting.store_url, file, bucket, TermRun)]
    return merged_terms(runs, np.uint64(counting.multiplier), least, most) if runs else (np.zeros(0, np.uint64), np.zeros(0, np.int32))


def _store_runs(runs: Iterable[_Run], counting: Counting) -> File:
    """One file, of which a task that merges a bucket reads the arrays of that bucket alone."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, run in enumerate(runs):
        places = bounds(run.hashes, counting.n_buckets)
        for bucket in range(counting.n_buckets):
            part = run.between(places[bucket], places[bucket + 1]).alone()
            arrays |= {f"{bucket}-{number}-{name}": array for name, array in part._asdict().items() if len(part.hashes)}
    return _stored(opened_store(counting.store_url), f"{counting.prefix}/runs/{secrets.token_hex(4)}", arrays)


@translate_os_errors("write", "the counts of terms")
def _stored(store: Store, key: str, arrays: dict[str, NDArray[Any]]) -> File:
    path = Path(store.staging()) / "arrays.npz"
    np.savez(path, allow_pickle=False, **arrays)
    file = store.upload(key, path)
    path.parent.rmdir()
    return file


def _texts(url: str, file: File) -> TextRows:
    with np.load(local_file(url, file), allow_pickle=False) as arrays:
        return TextRows(arrays["indptr"], arrays["letters"])


def _runs(url: str, file: File, bucket: int, kind: type[_Run]) -> list[_Run]:
    with np.load(local_file(url, file), allow_pickle=False) as arrays:
        numbers = sorted({int(name.split("-")[1]) for name in arrays.files if name.startswith(f"{bucket}-")})
        return [kind(**{name: arrays[f"{bucket}-{number}-{name}"] for name in kind._fields}) for number in numbers]


@lru_cache(maxsize=1)
def _known(url: str, file: str) -> Words:
    """The words of a file, by its record: many tasks of a worker read by them."""
    return Words.of(_texts(url, File.model_validate_json(file)))
