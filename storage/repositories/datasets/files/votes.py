"""Votes about documents, by voter and class."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.votes import Vote, Votes
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT, Label
from storage.repositories.datasets.files.npy import INDPTR, RaggedWriter
from storage.repositories.datasets.labels import Classes, label_detail

NAME = "votes"
"""Beginning of the names of the files, by content."""
_COLUMNS = {"voter": "<i4", "class_index": "<i4", "probability": "<f8"}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ROUNDING = 0.01
"""of each probability, by which their sum may be above 1"""
_FEWER = "leave some out, or have HALFMOON_MAX_VOTERS raised"


class _Given(NamedTuple):
    """Votes about one document, an element a class."""

    voters: list[str]
    labels: list[Label]
    probabilities: list[float]


class VotesWriter:
    """Writer of the votes of a dataset, in order. Memory does not grow with the documents."""

    def __init__(self, folder: Path, most: int, stack: ExitStack) -> None:
        """``most`` voters may there be. The stack closes the files."""
        self._votes = RaggedWriter(folder, NAME, _COLUMNS, stack)
        self._most = most
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._first: dict[int, tuple[int, int] | None] = {}
        """the voter and its first document by class, None of a class that others vote for, too"""
        self._length = 0

    @property
    def n_bytes(self) -> int:
        """Bytes on disk so far."""
        return self._votes.n_bytes

    @property
    def voters(self) -> dict[str, int]:
        """Number of documents by voter, sorted."""
        return dict(sorted(self._counts.items()))

    def append(self, votes: Sequence[Mapping[str, Vote] | None] | None, classes: Classes, length: int) -> None:
        """Append the votes about the next ``length`` documents, which are valid; None where there are none.

        Raises LimitExceeded for voters and classes.
        """
        if votes is None or not any(votes):
            self._votes.append(None, {}, length)
            self._length += length
            return
        given = [_given(each or {}, classes.label_type) for each in votes]
        for each in votes:
            for voter in each or ():
                self._counts[voter] = self._counts.get(voter, 0) + 1
                self._numbers.setdefault(voter, len(self._numbers))
        if len(self._numbers) > self._most:
            raise LimitExceeded("voters", self._most, _FEWER)
        columns: dict[str, NDArray[Any]] = {
            "voter": np.array([self._numbers[voter] for each in given for voter in each.voters], np.int32),
            "class_index": classes.encode([label for each in given for label in each.labels]),
            "probability": np.array([number for each in given for number in each.probabilities], np.float64),
        }
        lengths = np.fromiter((len(each.voters) for each in given), np.int64, length)
        owners = np.repeat(np.arange(self._length, self._length + length), lengths)
        pairs, first = np.unique(np.stack([columns["class_index"], columns["voter"]]), axis=1, return_index=True)
        for class_index, voter, position in zip(*pairs.tolist(), owners[first].tolist(), strict=True):
            known = self._first.setdefault(class_index, (voter, position))
            if known is not None and known[0] != voter:
                self._first[class_index] = None
        self._votes.append(lengths, columns, length)
        self._length += length

    @property
    def classes(self) -> set[int]:
        """The classes that somebody voted for, as numbered so far."""
        return set(self._first)

    def lonely(self) -> dict[int, tuple[str, int]]:
        """The classes that one voter alone votes for, as numbered so far, with the voter and its first document."""
        names = list(self._numbers)
        return {class_index: (names[each[0]], each[1]) for class_index, each in self._first.items() if each}

    def finish(self, final: NDArray[np.int32]) -> dict[str, Path]:
        """The finished files by content, none without votes; ``final`` are the numbers of the classes."""
        places = {voter: place for place, voter in enumerate(sorted(self._numbers))}
        voters = np.array([places[voter] for voter in self._numbers], np.int32)
        return self._votes.finish({"voter": voters, "class_index": final}, ["voter", "class_index"])


def vote_faults(votes: Sequence[Mapping[str, Any] | None], label_type: type | None) -> Iterator[tuple[int, str, str]]:
    """Votes that are not valid: the places of their documents, the field and the reasons.

    ``label_type`` is the type of the labels so far.
    """
    for place, given in enumerate(votes):
        for voter, vote in (given or {}).items():
            wrong = label_detail(voter, str)
            detail = _vote_detail(vote) if wrong is None else f"is no name of a voter: it {wrong}"
            if detail is None:
                for label in _given({voter: vote}, label_type).labels:
                    label_type = label_type or type(label)
                    detail = detail or label_detail(label, label_type)
            if detail is not None:
                yield place, "votes", f"{voter[:MAX_TEXT]!r} {detail}"


def _vote_detail(vote: Any) -> str | None:
    if not isinstance(vote, Mapping):
        return None
    if not vote:
        return "names no class; who abstains is left out"
    for label, number in vote.items():
        if isinstance(number, bool) or not (isinstance(number, int | float) and 0 <= number <= 1):
            return f"gives {label!r} the probability {number!r}; it must be a number from 0 to 1"
    total = sum(vote.values())
    if total > 1 + _ROUNDING * len(vote):
        return f"gives classes probabilities that sum to {total:.4g}; at most 1 is possible: divide them by their sum"
    return None


def _given(votes: Mapping[str, Vote], label_type: type | None) -> _Given:
    """Votes as elements; names of integers in an object, which JSON writes as texts, are integers again."""
    found = _Given([], [], [])
    for voter, vote in votes.items():
        for label, probability in vote.items() if isinstance(vote, Mapping) else [(vote, 1.0)]:
            found.voters.append(voter)
            written = label_type is int and isinstance(label, str) and _INTEGER.fullmatch(label)
            found.labels.append(int(label) if written else label)
            found.probabilities.append(float(probability))
    return found


def votes_in(arrays: Mapping[str, NDArray[Any]], voters: list[str], classes: list[Label]) -> Votes:
    """The votes of arrays by content."""
    columns = (arrays[f"{NAME}.{name}"] for name in _COLUMNS)
    return Votes(voters, classes, arrays[f"{NAME}.{INDPTR}"], *columns)
