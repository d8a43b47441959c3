"""Graphs in ONNX: nodes, tensors, values, and the file around them, in the wire format of protocol buffers.

Arrays are not copied. Sources: onnx.proto of ONNX 1.12, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, and
https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


FLOAT, UINT8, INT8, INT64, STRING, DOUBLE = 1, 2, 3, 7, 8, 11
"""types of elements"""
_KINDS = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int64": INT64, "float64": DOUBLE}
_IR_VERSION, _OPERATORS = 8, 17
_MOST_BYTES = (1 << 31) - 1
"""bytes of a message, by the standard"""


class GraphTooLarge(Exception):
    """The tensors of a graph take more bytes than a file in this format can hold."""


def node(
    operator: str, inputs: Sequence[str], output: str, *, domain: str = "", **attributes: float | list[int]
) -> Message:
    """A node of a graph, which has the name of its output. Operators are those of the standard, or of a ``domain``."""
    named = [message(5, text(1, name), *_attribute(value)) for name, value in attributes.items()]
    kind = [text(4, operator), text(7, domain)]
    return message(1, *(text(1, each) for each in inputs), text(2, output), text(3, output), *kind, *named)


def _attribute(value: float | list[int]) -> tuple[Message, Message]:
    if isinstance(value, list):
        return numbers(8, value), number(20, 7)
    return (single(2, value), number(20, 1)) if isinstance(value, float) else (number(3, value), number(20, 2))


def tensor(name: str, array: NDArray[Any]) -> Message:
    """Numbers that are part of the graph: float32, float64, int64, int8 or uint8."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    content: Message = [little.data.cast("B")] if little.size else []
    return message(5, numbers(1, array.shape), number(2, _KINDS[array.dtype.name]), text(8, name), message(9, content))


def graph_input(name: str, kind: int, shape: Sequence[str | int]) -> Message:
    """A value that the graph takes; a dimension that is not known has a name."""
    return message(11, _value(name, kind, shape))


def graph_output(name: str, kind: int, shape: Sequence[str | int]) -> Message:
    """A value that the graph makes."""
    return message(12, _value(name, kind, shape))


def _value(name: str, kind: int, shape: Sequence[str | int]) -> Message:
    dimensions = [message(1, text(2, each) if isinstance(each, str) else number(1, each)) for each in shape]
    return [*text(1, name), *message(2, message(1, number(1, kind), message(2, *dimensions)))]


def onnx_file(
    name: str,
    parts: Sequence[Message],
    about: Mapping[str, str] | None = None,
    domains: Mapping[str, int] | None = None,
) -> Message:
    """The pieces of the file of a graph that is made of these parts; ``domains`` are the versions of operators beyond
    the standard. Raises GraphTooLarge.
    """
    graph = [*text(2, name), *(piece for part in parts for piece in part)]
    if size_of(graph) > _MOST_BYTES:
        raise GraphTooLarge
    properties = [message(14, text(1, key), text(2, value)) for key, value in (about or {}).items()]
    whole = [
        number(1, _IR_VERSION),
        text(2, "halfmoon"),
        *(
            message(8, text(1, domain), number(2, version))
            for domain, version in {"": _OPERATORS, **(domains or {})}.items()
        ),
        message(7, graph),
        *properties,
    ]
    return [piece for part in whole for piece in part]
