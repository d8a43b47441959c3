"""Documents from tensors of the Open Inference Protocol: the three arrays of a CSR matrix, a dense matrix X, or
strings.

A dense matrix may be beside one of the others: then they are parts of the same documents. What MLServer's codecs make
of documents is taken as well: a single tensor under a name of theirs, arrays and strings as columns, strings in base64.

The extension for binary data, as Triton's client sends it unless it is told otherwise: the body begins with the JSON,
whose length is in the header ``Inference-Header-Content-Length``. The data of the tensors follow in their order, of
``binary_data_size`` bytes each: numbers little-endian, strings each after its length in four bytes. Answers are JSON,
which these clients read, too.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from app.codecs.base import Bounds, Reserve, check_limit
from app.codecs.dispatch import decompressor_of, media_type_of
from app.codecs.json.struct import decode_structs, decoded_slices, trimmed
from app.codecs.json.text import InvalidJson, JsonText
from app.codecs.numbers import narrowed
from app.codecs.transport.encodings import filtered
from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.requests import RESERVATION, in_thread, read_blocks
from app.services.wiring import Services
from core.documents.kinds import DENSE as VECTOR
from core.documents.kinds import PartRows, Rows, RowsOfKind, TextRows, in_words, parts_of, without_parts
from core.documents.rows import MAX_FEATURES, SparseRows, find_faults, layout_fault, sorted_rows
from core.errors import MAX_FAULTS, refuse
from storage.records import MAX_TEXT

LENGTH = "inference-header-content-length"
_MOST_DIGITS = 20
"""digits of a length: Python refuses to convert thousands"""
_STRINGS_A_STEP = 1000
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

    json: memoryview
    data: memoryview


async def read_parts(request: Request, services: Services) -> BinaryBody:
    """The JSON of a body and the binary data behind it, empty where there are none.

    Raises InvalidRequest, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    media_type = media_type_of(request.headers)
    if media_type not in _TYPES:
        raise UnsupportedMediaType(
            f"a body of type {media_type[:MAX_TEXT]}",
            "this body must be application/json, or have binary data behind the JSON",
        )
    bounds, reserve = services.settings.request_bounds, request.scope[RESERVATION].grow
    decompressor = decompressor_of(request.headers, bounds, reserve)
    data = await in_thread(services.pools.parse, filtered, await read_blocks(request, bounds), decompressor)
    length = request.headers.get(LENGTH)
    if length is None:
        return BinaryBody(data, data[:0])
    if not length.isdecimal() or len(length) > _MOST_DIGITS or int(length) > len(data):
        raise InvalidRequest(LENGTH, f"must be the number of bytes of the JSON, at most the {len(data)} of the body")
    return BinaryBody(data[: int(length)], data[int(length) :])


def sliced(sizes: Sequence[Any], names: Sequence[str], data: memoryview) -> Iterator[memoryview | None]:
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
    return (None if size is None else data[end - size : end] for size, end in zip(sizes, ends, strict=True))


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
        if len(found) == _STRINGS_A_STEP:
            yield found
            found = []
    yield found


T = TypeVar("T")
Behind = Mapping[str, memoryview | None]
"""Binary data behind the JSON, by the name of their tensor."""
_WHOLE = ("INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8")
_REAL = ("FP32", "FP64", "FP16", *_WHOLE)
SPARSE: Mapping[str, Sequence[str]] = {"indptr": _WHOLE, "indices": _WHOLE, "data": _REAL}
DENSE: Mapping[str, Sequence[str]] = {"X": _REAL}
TEXT = "text"
_STRINGS: Mapping[str, Sequence[str]] = {TEXT: ("BYTES",)}
_TOGETHER = [[_STRINGS], [SPARSE], [DENSE], [_STRINGS, DENSE], [SPARSE, DENSE]]
"""Inputs that are documents."""
_MOST_INPUTS = 8
_FLOAT_BYTES = 4
"""bytes of a value of a dense matrix"""
_CHECKED_BYTES = 10
"""bytes of a value and its index, and of two masks while they are checked"""
_AT_ONCE = 1 << 18
"""values of a dense matrix whose positions are looked up at once"""
_decode_texts = msgspec.json.Decoder(list[str]).decode
_decode_numbers = msgspec.json.Decoder(list[float]).decode
_decode_rows = msgspec.json.Decoder(list[list[float]]).decode


class Tensor(msgspec.Struct):
    """An input tensor. Its data are parsed after its name and its type were checked."""

    name: str
    shape: list[int]
    datatype: str
    data: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    parameters: dict[str, Any] | None = None


def documents_of(
    inputs: msgspec.Raw, bounds: Bounds, reserve: Reserve, binary: bytes | memoryview = b""
) -> Iterator[Rows | None]:
    """The documents of the inputs, after None for each slice that was parsed.

    Raises InvalidRequest with the tensor, InvalidDocuments, LimitExceeded, TooManyRequests.
    """
    try:
        tensors = decode_structs(memoryview(inputs), Tensor, _MOST_INPUTS, reserve)
    except InvalidJson as error:
        raise InvalidRequest(f"inputs{error.field}", error.detail) from None
    if len(tensors) == 1:
        tensors = [_under_known_name(tensors[0])]
    named = {tensor.name: tensor for tensor in tensors}
    sizes = [(tensor.parameters or {}).get("binary_data_size") for tensor in tensors]
    names = [tensor.name[:MAX_TEXT] for tensor in tensors]
    behind = dict(zip(named, sliced(sizes, names, memoryview(binary)), strict=False))
    forms = [form for form in (_STRINGS, SPARSE, DENSE) if form.keys() <= named.keys()]
    if (
        len(named) != len(tensors)
        or named.keys() != {name for form in forms for name in form}
        or forms not in _TOGETHER
    ):
        given = ", ".join(repr(tensor.name[:MAX_TEXT]) for tensor in tensors[:MAX_FAULTS])
        raise InvalidRequest(
            "inputs",
            "must be indptr, indices and data (a CSR matrix), or text, or X (a dense matrix), which may also be "
            "beside one of these; "
            f"each once; given: {given or 'none'}",
        )
    parts: dict[str, RowsOfKind] = {}
    for form in forms:
        parts |= yield from _part(form, named, behind, bounds, reserve)
    if len({rows.n_rows for rows in parts.values()}) > 1:
        raise InvalidRequest("inputs", f"{in_words(parts)} are of different numbers of documents")
    yield without_parts(PartRows(parts))


def _under_known_name(tensor: Tensor) -> Tensor:
    """A single tensor under its known name: strings are texts, a matrix is X."""
    known = tensor.name in (TEXT, *SPARSE, *DENSE)
    if known or (tensor.datatype != "BYTES" and len(tensor.shape) != 2):
        return tensor
    return msgspec.structs.replace(tensor, name=TEXT if tensor.datatype == "BYTES" else next(iter(DENSE)))


def _part(
    form: Mapping[str, Sequence[str]], named: Mapping[str, Tensor], behind: Behind, bounds: Bounds, reserve: Reserve
) -> Generator[None, None, Mapping[str, RowsOfKind]]:
    """The part of the documents that is in these tensors, by its name."""
    if form is _STRINGS:
        return {TEXT: (yield from _texts(named[TEXT], behind[TEXT], bounds, reserve))}
    arrays: dict[str, NDArray[Any]] = {}
    for name, datatypes in form.items():
        arrays[name] = yield from _array(named[name], behind[name], datatypes, bounds, reserve)
    rows = (yield from _of_dense(arrays["X"], reserve)) if form is DENSE else _of_sparse(arrays)
    check_limit(rows.n_rows, "documents", bounds.documents)
    wrong = layout_fault(rows)
    refuse([wrong] if wrong else find_faults(rows := sorted_rows(rows), MAX_FAULTS))
    if not rows.n_rows:
        raise InvalidRequest("inputs", "there is no document")
    return {VECTOR: rows} if form is DENSE else parts_of(rows)


def _texts(
    tensor: Tensor, binary: memoryview | None, bounds: Bounds, reserve: Reserve
) -> Generator[None, None, TextRows]:
    """The documents of a tensor of strings, one an element; yields None after each slice."""
    if tensor.datatype != "BYTES":
        raise InvalidRequest(tensor.name, f"datatype {tensor.datatype[:MAX_TEXT]!r} is not BYTES")
    n_texts, parts = 0, []
    slices = (
        _slices(tensor, _decode_texts, "strings", bounds)
        if binary is None
        else strings_of(tensor.name, binary, bounds.document_bytes)
    )
    in_base64 = (tensor.parameters or {}).get("content_type") == "base64"
    for texts in slices:
        if in_base64:
            try:
                texts = [str(b64decode(text, validate=True), "utf-8") for text in texts]
            except (binascii.Error, ValueError):  # also of what is not UTF-8
                detail = "its content_type is base64, but a string is not UTF-8 text in base64"
                raise InvalidRequest(tensor.name, detail) from None
        parts.append(TextRows.of(texts))
        reserve(parts[-1].data.nbytes + parts[-1].indptr.nbytes)
        n_texts += len(texts)
        check_limit(n_texts, "documents", bounds.documents)
        yield None
    if tensor.shape not in ([n_texts], [n_texts, 1]):  # many clients send strings as a column
        raise InvalidRequest(tensor.name, f"{n_texts} strings do not fill the shape {tensor.shape[:MAX_FAULTS]}")
    if not n_texts:
        raise InvalidRequest("inputs", "there is no document")
    return TextRows.joined(parts)


def _slices(tensor: Tensor, decode: Callable[[JsonText], list[T]], what: str, bounds: Bounds) -> Iterator[list[T]]:
    """The elements of a tensor, some at a time."""
    try:
        yield from decoded_slices(
            decode, memoryview(tensor.data), bounds.document_bytes, f"an element of {tensor.name}"
        )
    except InvalidJson as error:
        raise InvalidRequest(tensor.name, f"data must be {what}: {error.detail}") from None


def _of_sparse(arrays: Mapping[str, NDArray[Any]]) -> SparseRows:
    indices = arrays["indices"]
    if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < MAX_FEATURES):
        raise InvalidRequest("indices", f"must lie between 0 and {MAX_FEATURES - 1}")
    indptr = arrays["indptr"].astype(np.int64)
    if len(indptr) and (indptr[0], indptr[-1]) != (0, len(indices)):
        raise InvalidRequest(
            "indptr",
            f"must go from 0 to {len(indices)}, the number of indices, but goes from {indptr[0]} to {indptr[-1]}",
        )
    n_features = int(indices.max()) + 1 if len(indices) else 0
    return SparseRows(indptr, indices.astype(np.uint32), narrowed(arrays["data"]), n_features)


def _of_dense(matrix: NDArray[np.float32], reserve: Reserve) -> Generator[None, None, SparseRows]:
    """The values that are not zero; yields None after each slice of rows."""
    n_rows, n_features = matrix.shape
    indptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(np.count_nonzero(matrix, axis=1), out=indptr[1:])
    reserve(indptr.nbytes + _CHECKED_BYTES * int(indptr[-1]))
    indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)
    height = max(1, _AT_ONCE // max(1, n_features))
    for start in range(0, n_rows, height):
        part = matrix[start : start + height]
        here = slice(int(indptr[start]), int(indptr[start + len(part)]))
        of_rows, indices[here] = np.nonzero(part)
        values[here] = part[of_rows, indices[here]]
        yield None
    return SparseRows(indptr, indices, values, n_features)


def _array(
    tensor: Tensor, binary: memoryview | None, datatypes: Sequence[str], bounds: Bounds, reserve: Reserve
) -> Generator[None, None, NDArray[Any]]:
    """The numbers of a tensor, in its shape."""
    if tensor.datatype not in datatypes:
        raise InvalidRequest(
            tensor.name, f"datatype {tensor.datatype[:MAX_TEXT]!r} is not one of {', '.join(datatypes)}"
        )
    n_dimensions = 2 if tensor.name in DENSE else 1
    is_column = (
        n_dimensions == 1 and len(tensor.shape) == 2 and tensor.shape[1] == 1
    )  # as MLServer's codec sends arrays
    if (len(tensor.shape) != n_dimensions and not is_column) or min(tensor.shape) < 0:
        raise InvalidRequest(tensor.name, f"its shape must be of {n_dimensions} numbers, not negative")
    if tensor.shape[0] and not tensor.shape[-1]:
        raise InvalidRequest(tensor.name, f"has {tensor.shape[0]} documents without a single feature")
    check_limit(tensor.name in DENSE and tensor.shape[0], "documents", bounds.documents)
    check_limit(prod(tensor.shape), "numbers in a tensor", bounds.nonzeros)
    parts: list[NDArray[Any]] = []
    for numbers in _numbers(tensor, bounds) if binary is None else [numbers_of(tensor.name, tensor.datatype, binary)]:
        # before the memory is taken; that of a body in binary is reserved already
        reserve(numbers.size * (_FLOAT_BYTES if tensor.name in DENSE else 0 if binary else numbers.itemsize))
        parts.append(narrowed(numbers) if tensor.name in DENSE else numbers)
        yield
    if len(parts) > 1:
        reserve(sum(part.nbytes for part in parts))
    numbers = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)
    if numbers.size != prod(tensor.shape):
        raise InvalidRequest(tensor.name, f"{numbers.size} numbers do not fill the shape {tensor.shape}")
    if numbers.ndim > 1 and list(numbers.shape) != tensor.shape:
        raise InvalidRequest(tensor.name, f"the data are nested in the shape {list(numbers.shape)}, not {tensor.shape}")
    return numbers.reshape(tensor.shape[:n_dimensions])


def _numbers(tensor: Tensor, bounds: Bounds) -> Iterator[NDArray[np.float64]]:
    """The data as arrays, flat or nested as sent."""
    nested = bytes(trimmed(memoryview(tensor.data)[1:])[:1]) == b"["
    decode: Callable[[JsonText], list[Any]] = _decode_rows if nested else _decode_numbers
    what, width = f"{tensor.datatype} numbers, flat or in rows of the shape", None
    for numbers in _slices(tensor, decode, what, bounds):
        try:
            part = np.array(numbers, np.float64)
        except ValueError:
            raise InvalidRequest(tensor.name, f"data must be {what}: the rows differ in length") from None
        if width not in (None, part.shape[1:]):
            raise InvalidRequest(tensor.name, f"data must be {what}: the rows differ in length")
        width = part.shape[1:]
        if tensor.datatype in _WHOLE:
            # some clients write integers as floats, which are exact below 2**53
            odd = part[(part % 1 != 0) | (np.abs(part) >= 2**53)]
            if odd.size:
                detail = f"but {odd.flat[0]:g} is not whole, or too large"
                raise InvalidRequest(tensor.name, f"data must be {tensor.datatype} numbers, {detail}")
        yield part
