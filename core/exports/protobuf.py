"""The wire format of protocol buffers, as far as ONNX needs it: numbers, and fields with a length. Arrays are not
copied.

Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Sequence

Message = list[bytes | memoryview]
"""the bytes of a message, in pieces"""
_LENGTH, _SINGLE = 2, 5


def number(field: int, value: int) -> Message:
    """A field that is a number, not negative."""
    return [_varint(field << 3) + _varint(value)]


def single(field: int, value: float) -> Message:
    """A field that is a number of 32 bits with a point."""
    return [_varint(field << 3 | _SINGLE) + struct.pack("<f", value)]


def numbers(field: int, values: Sequence[int]) -> Message:
    """A repeated field of numbers, not negative."""
    return [piece for value in values for piece in number(field, value)]


def text(field: int, value: str) -> Message:
    """A field that is a text."""
    return message(field, [value.encode()])


def message(field: int, *contents: Message) -> Message:
    """A field that is a message, or bytes, made of these contents."""
    pieces = [piece for content in contents for piece in content]
    return [_varint(field << 3 | _LENGTH) + _varint(size_of(pieces)), *pieces]


def size_of(pieces: Message) -> int:
    """Number of bytes."""
    return sum(piece.nbytes if isinstance(piece, memoryview) else len(piece) for piece in pieces)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
