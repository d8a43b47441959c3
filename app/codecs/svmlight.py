"""``text/x-svmlight``: ``label index:value index:value # comment`` a line; indices count from 1, label 0 is unlabeled.

``qid:`` groups, which rankers use, are ignored; comments too. Labels are integers.
"""

import re
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import MAX_FAULTS
from app.codecs.documents import refusal, rows_of
from app.codecs.lines import Lines
from core.errors import Fault
from core.rows import MAX_FEATURES
from workers.datasets import Batch

_COMMENT = re.compile(rb"#[^\n]*")
_GROUP = re.compile(rb"[ \t]qid:\S*")
_BLANK = re.compile(rb"\n\s*\n")
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SPACED = bytes.maketrans(b"\t\r", b"  ")
_COMMAS = bytes.maketrans(b": \n", b",,,")
_OTHERS = bytes(set(range(256)) - set(b": \n"))
_LARGEST_LABEL = 2**53


class SvmlightDecoder:
    """Blocks of the usual spelling are parsed as one list of numbers; others, and wrong ones, line by line."""

    def __init__(self, document_bytes: int) -> None:
        self._lines = Lines(document_bytes)
        self._numbers = msgspec.json.Decoder(list[float])
        self._position = 0

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        return self._batches(self._lines.feed(data))

    def finish(self) -> Iterator[Batch]:
        """See Decoder."""
        return self._batches(self._lines.finish())

    def _batches(self, block: bytes) -> Iterator[Batch]:
        first = self._lines.number
        self._lines.number += block.count(b"\n")
        batch = (self._at_once(_plain(block)) or self._one_by_one(block, first)) if block else None
        if batch and batch.labels:
            self._position += len(batch.labels)
            yield batch

    def _at_once(self, block: bytes) -> Batch | None:
        """The block's documents, or None unless every line is ``label index:value index:value`` in numbers as JSON spells them."""
        separators = block.translate(None, _OTHERS).replace(b" :", b":")
        if not separators or separators.count(b"\n") + separators.count(b":") != len(separators):
            return None
        try:
            numbers = np.array(self._numbers.decode(b"[" + block[:-1].translate(_COMMAS) + b"]"))
        except msgspec.MsgspecError:
            return None
        ends = np.flatnonzero(np.frombuffer(separators, np.uint8) == 10)
        indptr = np.zeros(len(ends) + 1, np.int64)
        indptr[1:] = ends - np.arange(len(ends))
        return _checked(numbers, indptr) if len(numbers) == 2 * indptr[-1] + len(ends) else None

    def _one_by_one(self, block: bytes, first: int) -> Batch:
        numbers: list[float] = []
        counts: list[int] = []
        faults: list[Fault] = []
        for number, line in enumerate(block.split(b"\n"), first):
            words = _GROUP.sub(b"", _COMMENT.sub(b"", line)).split()
            if not words:
                continue
            try:
                numbers += _parsed(words)
                counts.append(len(words) - 1)
            except _WrongLine as wrong:
                name = str(self._position + len(counts) + len(faults))
                faults.append(Fault(name, wrong.field, f"line {number}: {wrong.detail}"))
            if len(faults) == MAX_FAULTS:
                break
        if faults:
            raise refusal(faults)
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        return _assembled(np.array(numbers), indptr)


class _WrongLine(Exception):
    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.detail = detail


def _plain(block: bytes) -> bytes:
    """The block without comments, groups, blank lines and needless signs and spaces, ending with a line feed."""
    if b"#" in block:
        block = _COMMENT.sub(b"", block)
    if b"qid:" in block:
        block = _GROUP.sub(b"", block)
    block = block.translate(_SPACED).replace(b" \n", b"\n").replace(b"\n+", b"\n").removeprefix(b"+")
    if b"\n\n" in block or b"\n " in block:
        block = _BLANK.sub(b"\n", block).lstrip()
    return block if block.endswith(b"\n") else block + b"\n"


def _split(numbers: NDArray[np.float64], indptr: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels, shape (n_documents,), and pairs of index and value, shape (n_nonzeros, 2)."""
    starts = 2 * indptr[:-1] + np.arange(len(indptr) - 1)
    keep = np.ones(len(numbers), bool)
    keep[starts] = False
    return numbers[starts], numbers[keep].reshape(-1, 2)


def _checked(numbers: NDArray[np.float64], indptr: NDArray[np.int64]) -> Batch | None:
    labels, pairs = _split(numbers, indptr)
    indices = pairs[:, 0]
    bad = (indices < 1) | (indices > MAX_FEATURES) | (indices != np.floor(indices))
    if bad.any() or (labels != np.floor(labels)).any() or (np.abs(labels) > _LARGEST_LABEL).any():
        return None
    return _assembled(numbers, indptr)


def _assembled(numbers: NDArray[np.float64], indptr: NDArray[np.int64]) -> Batch:
    labels, pairs = _split(numbers, indptr)
    rows = rows_of(indptr, (pairs[:, 0] - 1).astype(np.uint32), pairs[:, 1])
    return Batch(rows, [label or None for label in labels.astype(np.int64).tolist()], None)


def _parsed(words: list[bytes]) -> list[float]:
    label = _number(words[0], "label")
    if not label.is_integer() or abs(label) > _LARGEST_LABEL:
        raise _WrongLine("label", f"the label {_shown(words[0])} is not an integer (0: unlabeled)")
    numbers = [label]
    for word in words[1:]:
        index, colon, value = word.partition(b":")
        if not colon:
            raise _WrongLine("indices", f"{_shown(word)} is not index:value")
        at = _number(index, "indices")
        if not at.is_integer() or not 1 <= at <= MAX_FEATURES:
            raise _WrongLine("indices", f"the index {_shown(index)} is not an integer from 1 to {MAX_FEATURES}")
        numbers += (at, _number(value, "values"))
    return numbers


def _number(text: bytes, field: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else float("nan")
    if not np.isfinite(number):
        raise _WrongLine(field, f"{_shown(text)} is not a finite number")
    return number


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
