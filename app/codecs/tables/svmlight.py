"""``text/x-svmlight``: ``label index:value index:value # comment`` a line.

- Labels are integers; 0 is unlabeled.
- Indices count from 1.
- Comments and ``qid:`` groups are ignored.
"""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import LARGEST_WHOLE, Format
from app.codecs.numbers import rows_of
from app.codecs.transport.encodings import Filtered, WithoutByteOrderMark
from app.codecs.transport.lines import InvalidLine, LinesDecoder
from core.documents.rows import MAX_FEATURES
from core.errors import Fault
from storage.records import Label
from storage.repositories.datasets import Batch

_COMMENT = re.compile(rb"#[^\n]*")
_GROUP = re.compile(rb"[ \t]qid:\S*")
_BLANK = re.compile(rb"\n\s*\n")
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SPACED = bytes.maketrans(b"\t\r", b"  ")
_COMMAS = bytes.maketrans(b": \n", b",,,")
_OTHERS = bytes(set(range(256)) - set(b": \n"))
_LARGEST_VALUE = float(np.finfo(np.float32).max)
_FEW_LABELS = 2


class SvmlightDecoder(LinesDecoder):
    """Parses a block in the usual spelling as one list of numbers, any other block line by line."""

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self._numbers = msgspec.json.Decoder(list[float])
        self._labels: set[Label | None] = set()

    def warnings(self) -> Sequence[str]:
        """See Decoder: labels of 0 and 1 alone, where 0 may have been meant as a class."""
        zero_or_one = self._labels == {None, 1}
        return (
            ["all labels are 1 or 0, and 0 is read as unlabeled; if 0 is a class here, send 2 or -1 for it"]
            if zero_or_one
            else []
        )

    def batch_of(self, block: bytes) -> Batch | None:
        """See LinesDecoder."""
        batch = self._parse_together(_plain(block))
        if batch is None:
            lines = self.one_by_one(block, _parsed)
            indptr = np.cumsum([0, *(len(line) // 2 for line in lines)])
            numbers = np.array([number for line in lines for number in line])
            batch = _assembled(*_split(numbers, indptr), indptr)
        if len(self._labels) <= _FEW_LABELS:
            self._labels.update(batch.labels)
        return batch if batch.labels else None

    def _parse_together(self, block: bytes) -> Batch | None:
        """The documents of the block, or None unless every line is ``label index:value …`` with numbers that are valid
        JSON.
        """
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


def _plain(block: bytes) -> bytes:
    """The block without comments, groups, blank lines and redundant signs and spaces; it ends with a line feed."""
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
    """The documents; None if a number is out of range or an index repeated, which the parse line by line names."""
    labels, pairs = _split(numbers, indptr)
    indices = pairs[:, 0]
    bad = (indices < 1) | (indices > MAX_FEATURES) | (indices != np.floor(indices))
    if (
        bad.any()
        or not (np.abs(pairs[:, 1]) <= _LARGEST_VALUE).all()
        or (labels != np.floor(labels)).any()
        or (np.abs(labels) > LARGEST_WHOLE).any()
    ):
        return None
    ascends = np.diff(indices) > 0
    starts = indptr[1:-1]
    ascends[starts[(starts > 0) & (starts < len(pairs))] - 1] = True
    if not ascends.all():
        keys = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) * float(MAX_FEATURES + 1) + indices
        if len(np.unique(keys)) < len(keys):
            return None
    return _assembled(labels, pairs, indptr)


def _assembled(labels: NDArray[np.float64], pairs: NDArray[np.float64], indptr: NDArray[np.int64]) -> Batch:
    rows = rows_of(indptr, (pairs[:, 0] - 1).astype(np.uint32), pairs[:, 1])
    return Batch(rows, [label or None for label in labels.astype(np.int64).tolist()], None)


def _parsed(line: bytes) -> list[float] | None:
    """The numbers of a line: label, index, value, index, value …"""
    words = _GROUP.sub(b"", _COMMENT.sub(b"", line)).split()
    if not words:
        return None
    label = _number(words[0], "label") if _NUMBER.fullmatch(words[0]) else 0.5
    if not label.is_integer() or abs(label) > LARGEST_WHOLE:
        raise _wrong(
            "label",
            f"the label {_quoted(words[0])} is not an integer (0: unlabeled); labels that are words need JSON "
            "lines or a table",
        )
    numbers = [label]
    for word in words[1:]:
        index, colon, value = word.partition(b":")
        if not colon:
            raise _wrong("indices", f"{_quoted(word)} is not index:value")
        at = _number(index, "indices") if _NUMBER.fullmatch(index) else 0.5
        if not at.is_integer() or not 1 <= at <= MAX_FEATURES:
            raise _wrong("indices", f"the index {_quoted(index)} is not an integer from 1 to {MAX_FEATURES}")
        numbers += (at, _number(value, "values"))
    repeated = next((int(index) for index, times in Counter(numbers[1::2]).items() if times > 1), None)
    if repeated is not None:
        raise _wrong("indices", f"the index {repeated} is repeated")
    return numbers


def _number(text: bytes, field: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else float("nan")
    if not abs(number) <= _LARGEST_VALUE:
        raise _wrong(field, f"{_quoted(text)} is not a finite number, or beyond 3.4e38, the largest of float32")
    return number


def _wrong(field: str, detail: str) -> InvalidLine:
    return InvalidLine(Fault("", field, detail))


def _quoted(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))


FORMAT = Format(
    "text/x-svmlight",
    lambda reading: Filtered(WithoutByteOrderMark(), SvmlightDecoder(reading.bounds.document_bytes)),
    {
        "schema": {"type": "string", "description": "label index:value …, indices from 1, label 0: unlabeled."},
        "example": "1 4:0.2 18:0.9\n0 5:1\n",
    },
    endings=("svm", "svmlight", "libsvm"),
)
