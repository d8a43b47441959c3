"""Large JSON arrays and objects, cut at their own commas into slices that are decoded one at a time.

A decoder of JSON holds the interpreter until it returns, and its objects take many times the memory of their text. So
of a body no more than a slice is decoded in one call. NumPy finds the commas, block by block, in time linear in the
text. Only the structure is looked at: every byte but the cuts is in a slice, so what is no JSON is found when the
slices are decoded.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from app.codecs.base import BLOCK_BYTES
from app.codecs.json.text import InvalidJson, JsonText, decode_json
from storage.errors import LimitExceeded

T = TypeVar("T")
Flags = NDArray[np.bool_]

_SCANNED_BYTES = BLOCK_BYTES // 2
"""Bytes that are scanned at a time. A slice ends with the last comma of such a block, so most slices are no longer than
BLOCK_BYTES."""
_SPACE_BYTES = b" \t\n\r"
_SPACE = re.compile(rb"[ \t\n\r]*+")
_AT_BYTE = re.compile(r" \(byte \d+\)")
_CLOSING = {ord("["): ord("]"), ord("{"): ord("}")}
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")


def trimmed(text: memoryview) -> memoryview:
    """The text without the space around it."""
    start = _SPACE.match(text)
    text = text[start.end() if start else 0 :]
    while text and text[-1] in _SPACE_BYTES:
        tail = bytes(text[-BLOCK_BYTES:])
        text = text[: len(text) - len(tail) + len(tail.rstrip(_SPACE_BYTES))]
    return text


def elements(text: memoryview) -> Iterator[memoryview]:
    """The elements of an array, or the members of an object, without space around them. ``text`` has none, either.

    Raises InvalidJson if it is neither array nor object, or does not end as one.
    """
    scan, start, alone = _Commas(text), 1, True
    for commas in scan:
        for comma in commas.tolist():
            yield trimmed(text[start:comma])
            start, alone = comma + 1, False
    last = trimmed(text[start : scan.end])
    if last or not alone:
        yield last


def slices(text: memoryview, longest: int, what: str) -> Iterator[bytes]:
    """The elements of an array, or the members of an object, in slices of some BLOCK_BYTES, without the brackets and
    the commas between slices.

    A text that is no longer than a block is one slice. ``text`` has no space around it. Raises InvalidJson as
    ``elements``; LimitExceeded for a single element of more than ``longest`` bytes, and some more, which is called
    ``what``.
    """
    if len(text) <= BLOCK_BYTES:
        _check_brackets(text)
        if trimmed(text[1:-1]):
            yield bytes(text[1:-1])
        return
    scan, start, alone = _Commas(text), 1, True
    for commas in scan:
        if len(commas):
            end = int(commas[-1])
            yield _slice(text[start:end], longest, what)
            start, alone = end + 1, False
        elif scan.at - start > longest + BLOCK_BYTES:
            raise LimitExceeded(f"bytes in {what}", longest)
    if trimmed(text[start : scan.end]) or not alone:
        yield _slice(text[start : scan.end], longest, what)


def decoded_slices(decode: Callable[[JsonText], T], text: memoryview, longest: int, what: str) -> Iterator[T]:
    """Each slice of ``text`` as an array or object of its own, decoded. Raises InvalidJson, LimitExceeded."""
    opening, closing = bytes(text[:1]), bytes(text[-1:])
    for each in slices(text, longest, what):
        try:
            yield decode_json(decode, opening + each + closing)
        except InvalidJson as error:
            # positions would be those in the slice, of which the client knows nothing
            raise InvalidJson(
                _AT_BYTE.sub("", error.detail) if len(text) > BLOCK_BYTES else error.detail, error.field
            ) from None


def _slice(text: memoryview, longest: int, what: str) -> bytes:
    if len(text) > longest + 2 * BLOCK_BYTES:
        raise LimitExceeded(f"bytes in {what}", longest)
    if not trimmed(text):
        raise InvalidJson("JSON is malformed: something must follow and precede every comma")
    return bytes(text)


def _check_brackets(text: memoryview) -> None:
    if not text or text[0] not in _CLOSING:
        raise InvalidJson("expected an array or an object")
    if len(text) < 2 or text[-1] != _CLOSING[text[0]]:
        raise InvalidJson("JSON is malformed: the text ends too early")


@cache
def _steps_of(opening: bytes, closing: bytes) -> NDArray[np.int8]:
    """By how much each byte deepens the text, shape (256,)."""
    steps = np.zeros(256, np.int8)
    steps[list(opening)], steps[list(closing)] = 1, -1
    return steps


class Scan:
    """Reads text block by block: what is outside strings, and how many brackets are open.

    Three facts go from a block to the next: how deep the text is nested, whether it is inside a string, whether a
    backslash escapes what follows.
    """

    def __init__(self, opening: bytes, closing: bytes) -> None:
        """Of brackets those count that are ``opening`` or ``closing``."""
        self.depth = 0
        self.in_string = False
        self._escaped = False
        self._steps = _steps_of(opening, closing)

    def read(self, block: NDArray[np.uint8]) -> tuple[Flags, NDArray[np.int32]]:
        """Whether each byte of a block that is not empty is outside all strings, and how many brackets are open after
        it. A quote counts as outside where it ends a string.
        """
        quotes = block == _QUOTE
        quotes[self._escapes(block)] = False
        inside = np.logical_xor.accumulate(quotes) ^ self.in_string
        depths = np.cumsum(self._steps[block] * ~inside, dtype=np.int32) + np.int32(self.depth)
        self.in_string, self.depth = bool(inside[-1]), int(depths[-1])
        return ~inside, depths

    def _escapes(self, block: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Positions of the bytes that a backslash escapes: that follow an odd number of them."""
        backslashes = np.flatnonzero(block == _BACKSLASH)
        first = np.zeros(int(self._escaped), np.int64)
        backslashes = backslashes[int(np.searchsorted(backslashes, len(first))) :]
        # of backslashes in a row, every second one is itself escaped
        begins = np.flatnonzero(np.diff(backslashes, prepend=-2) != 1)
        order = np.arange(len(backslashes)) - np.repeat(begins, np.diff(begins, append=len(backslashes)))
        escaped = np.concatenate([first, backslashes[order % 2 == 0] + 1])
        self._escaped = bool(len(escaped) and escaped[-1] == len(block))
        return escaped[: len(escaped) - self._escaped]


class _Commas:
    """Finds the commas between the elements of one array or object."""

    def __init__(self, text: memoryview) -> None:
        _check_brackets(text)
        self.at = 0
        """End of the text that was scanned."""
        self.end = len(text) - 1
        """Position of the closing bracket."""
        self._text = text

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        """Positions of the commas in each block. Raises InvalidJson if the brackets do not match in number."""
        text, scan = np.frombuffer(self._text, np.uint8), Scan(b"[{", b"]}")
        while self.at < len(text):
            block, start = text[self.at : self.at + _SCANNED_BYTES], self.at
            self.at += len(block)
            outside, depth = scan.read(block)
            ended = np.flatnonzero(depth == 0)
            if len(ended) and start + int(ended[0]) < self.end:
                raise InvalidJson("JSON is malformed: there is text after the end of the value")
            yield np.flatnonzero((block == _COMMA) & (depth == 1) & outside) + start
        if scan.depth or scan.in_string:
            raise InvalidJson("JSON is malformed: the text ends too early")
