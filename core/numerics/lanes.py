"""WIDTH doubles as one value of compiled code, held in vector registers, in the same lanes on every processor.

A loop over the columns of a block is compiled number by number, and sums kept in an array are stored and loaded at
every nonzero: measured, a third more time. No operation here is fused or reordered.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

from core.numerics.width import WIDTH

LINE = 64
"""bytes of a cache line, where blocks begin"""

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_SINGLE, _SINGLES = ir.FloatType(), ir.VectorType(ir.FloatType(), WIDTH)
_NUMBER = ir.IntType(32)
_ALIGNED = min(LINE, 8 * WIDTH)
_UNALIGNED = 8
_UNALIGNED_SINGLE = 4

Emitter = Callable[[Any, Any, Any, Any], Any]
"""writes the instructions of an intrinsic: (context, builder, signature, arguments) -> its value"""


class Lanes(types.Type):
    """The type of such a value."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({WIDTH})")


LANES: Any = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


def _address(context: Any, builder: Any, signature: Any, arguments: Any, offset: Any) -> Any:
    """The address of the number at ``offset`` in the array ``arguments[0]``."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = builder.gep(array.data, [offset], source_etype=ir.DoubleType())
    # LLVM's pointers have no type; llvmlite's still may
    return place if place.type.is_opaque else builder.bitcast(place, ir.PointerType(_VECTOR))


def _row(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of row ``arguments[1]`` of the block ``arguments[0]``."""
    offset = builder.mul(arguments[1], ir.Constant(arguments[1].type, WIDTH))
    return _address(context, builder, signature, arguments, offset)


def _check_contiguous(vector: Any) -> None:
    if vector.layout != "C":  # the address of element j would not be j numbers from the first
        raise TypingError(f"a contiguous vector is needed, not {vector}")


def _load_intrinsic(_typing: Any, block: Any, row: Any) -> tuple[Any, Emitter]:
    """``load(block, row)``: a row of a block with rows of whole cache lines."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_row(context, builder, signature, arguments), align=_ALIGNED, typ=_VECTOR)

    return LANES(block, row), emit


def _fetch_intrinsic(_typing: Any, block: Any, row: Any) -> tuple[Any, Emitter]:
    """``fetch(block, row)``: have a row of such a block brought near, since it will be read or written soon.

    No number depends on it.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _row(context, builder, signature, arguments)
        if not place.type.is_opaque:
            place = builder.bitcast(place, ir.PointerType(ir.IntType(8)))
        name = "llvm.prefetch.p0" if place.type.is_opaque else "llvm.prefetch.p0i8"
        kind = ir.FunctionType(ir.VoidType(), [place.type, _NUMBER, _NUMBER, _NUMBER])
        # to read, into all caches, data
        how = [ir.Constant(_NUMBER, number) for number in (0, 3, 1)]
        builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), [place, *how])
        return context.get_dummy_value()

    return types.void(block, row), emit


def _take_intrinsic(_typing: Any, vector: Any, start: Any) -> tuple[Any, Emitter]:
    """``take(vector, start)``: WIDTH numbers of a contiguous vector, from position ``start``."""
    _check_contiguous(vector)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature, arguments, arguments[1])
        return builder.load(place, align=_UNALIGNED, typ=_VECTOR)

    return LANES(vector, start), emit


def _store_intrinsic(_typing: Any, block: Any, row: Any, lanes: Any) -> tuple[Any, Emitter]:
    """``store(block, row, lanes)``: write a row of such a block."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _row(context, builder, signature, arguments), align=_ALIGNED)
        return context.get_dummy_value()

    return types.void(block, row, lanes), emit


def _put_intrinsic(_typing: Any, vector: Any, start: Any, lanes: Any) -> tuple[Any, Emitter]:
    """``put(vector, start, lanes)``: write WIDTH numbers to a contiguous vector, from position ``start``."""
    _check_contiguous(vector)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _address(context, builder, signature, arguments, arguments[1]), align=_UNALIGNED)
        return context.get_dummy_value()

    return types.void(vector, start, lanes), emit


def _widen_intrinsic(_typing: Any, vector: Any, start: Any) -> tuple[Any, Emitter]:
    """``widen(vector, start)``:
    WIDTH numbers of a contiguous vector of float32, from position ``start``, as float64.
    """
    _check_contiguous(vector)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]], source_etype=_SINGLE)
        if not place.type.is_opaque:
            place = builder.bitcast(place, ir.PointerType(_SINGLES))
        return builder.fpext(builder.load(place, align=_UNALIGNED_SINGLE, typ=_SINGLES), _VECTOR)

    return LANES(vector, start), emit


def _spread_intrinsic(_typing: Any, number: Any) -> tuple[Any, Emitter]:
    """``spread(number)``: the same float64 in all lanes."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, arguments[0], ir.Constant(_NUMBER, 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_NUMBER, WIDTH), [0] * WIDTH))

    return LANES(number), emit


def _lane_by_lane(operation: str) -> Any:
    """The intrinsic of two values that does an operation of the builder lane by lane."""

    def define(_typing: Any, left: Any, right: Any) -> tuple[Any, Emitter]:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return getattr(builder, operation)(*arguments)

        return LANES(left, right), emit

    return intrinsic(define)


def _total_intrinsic(_typing: Any, lanes: Any) -> tuple[Any, Emitter]:
    """``total(lanes)``: their sum, halves added to each other until one is left."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        numbers = [builder.extract_element(arguments[0], ir.Constant(_NUMBER, lane)) for lane in range(WIDTH)]
        while len(numbers) > 1:
            half = len(numbers) // 2
            numbers = [builder.fadd(numbers[k], numbers[k + half]) for k in range(half)]
        return numbers[0]

    return types.float64(lanes), emit


load: Any = intrinsic(_load_intrinsic)
fetch: Any = intrinsic(_fetch_intrinsic)
take: Any = intrinsic(_take_intrinsic)
widen: Any = intrinsic(_widen_intrinsic)
store: Any = intrinsic(_store_intrinsic)
put: Any = intrinsic(_put_intrinsic)
spread: Any = intrinsic(_spread_intrinsic)
plus: Any = _lane_by_lane("fadd")
minus: Any = _lane_by_lane("fsub")
times: Any = _lane_by_lane("fmul")
total: Any = intrinsic(_total_intrinsic)
