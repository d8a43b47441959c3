"""The extension of the Open Inference Protocol for binary data, as Triton's client sends it unless it is told
otherwise.

The body begins with the JSON, whose length is in the header ``Inference-Header-Content-Length``. The data of the
tensors follow in their order, of ``binary_data_size`` bytes each: numbers little-endian, strings each after its length
in four bytes. Answers are JSON, which these clients read, too.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from app.codecs.base import check_limit
from app.codecs.dispatch import decompressor_of, media_type_of
from app.codecs.transport.encodings import filtered
from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.bodies import in_thread, read_blocks
from app.http.route_classes import RESERVATION, HttpState
from storage.records import MAX_TEXT

LENGTH = "inference-header-content-length"
_STRINGS = 1000
_TYPES = ("", "application/json", "application/octet-stream", "application/vnd.sagemaker-triton.binary+json")
"""Types that clients give to such a body; Triton's gives none."""
_NUMBERS = {
    **{
        "INT64": "<i8",
        "INT32": "<i4",
        "INT16": "<i2",
        "INT8": "i1",
        "UINT64": "<u8",
        "UINT32": "<u4",
        "UINT16": "<u2",
        "UINT8": "u1",
    },
    **{"FP64": "<f8", "FP32": "<f4", "FP16": "<f2"},
}


class BinaryBody(NamedTuple):
    """A body in two parts."""

    json: bytes
    data: bytes


async def read_parts(request: Request, state: HttpState) -> BinaryBody:
    """The JSON of a body and the binary data behind it, empty where there are none.

    Raises InvalidRequest, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    media_type = media_type_of(request.headers)
    if media_type not in _TYPES:
        raise UnsupportedMediaType(
            f"a body of type {media_type[:MAX_TEXT]}",
            "this body must be application/json, or have binary data behind the JSON",
        )
    bounds, reserve = state.settings.request_bounds, request.scope[RESERVATION].grow
    decompressor = decompressor_of(request.headers, bounds, reserve)
    data = await in_thread(state.parse_pool, filtered, b"".join(await read_blocks(request, bounds)), decompressor)
    length = request.headers.get(LENGTH)
    if length is None:
        return BinaryBody(data, b"")
    if not length.isdecimal() or int(length) > len(data):
        raise InvalidRequest(LENGTH, f"must be the number of bytes of the JSON, at most the {len(data)} of the body")
    return BinaryBody(data[: int(length)], data[int(length) :])


def sliced(sizes: Sequence[Any], names: Sequence[str], data: bytes) -> Iterator[memoryview | None]:
    """The data of each tensor, None for data in JSON (their size is None); raises InvalidRequest unless all data are
    used.
    """
    for name, size in zip(names, sizes, strict=True):
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
            raise InvalidRequest(name, "binary_data_size must be a number of bytes")
    ends = list(accumulate(size or 0 for size in sizes))
    if (ends[-1] if ends else 0) != len(data):
        raise InvalidRequest(
            "inputs",
            f"binary data of {ends[-1] if ends else 0} bytes are announced, but {len(data)} came behind the JSON",
        )
    view = memoryview(data)
    return (None if size is None else view[end - size : end] for size, end in zip(sizes, ends, strict=True))


def numbers_of(name: str, datatype: str, data: memoryview) -> NDArray[Any]:
    """The numbers of a tensor as they lie in the body; raises InvalidRequest."""
    dtype = np.dtype(_NUMBERS[datatype])
    if len(data) % dtype.itemsize:
        raise InvalidRequest(name, f"{len(data)} bytes are no {datatype} numbers")
    return np.frombuffer(data, dtype)


def strings_of(name: str, data: memoryview, longest: int) -> Iterator[list[str]]:
    """The strings of a tensor, some at a time; raises InvalidRequest, LimitExceeded for a string of more than
    ``longest`` bytes.
    """
    found: list[str] = []
    count = at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        at += 4 + length
        if at > len(data):
            raise InvalidRequest(name, f"the binary data end within string {count}")
        check_limit(length, f"bytes in an element of {name}", longest)
        try:
            found.append(str(data[at - length : at], "utf-8"))
        except UnicodeDecodeError:
            raise InvalidRequest(name, f"string {count} is not UTF-8") from None
        count += 1
        if len(found) == _STRINGS:
            yield found
            found = []
    yield found
