"""WIDTH doubles as one value of compiled code: what loops over blocks add up stays in vector registers.

A loop over the columns of a block is compiled number by number, and sums kept in an array are stored and loaded at every nonzero: measured, a third
more time. ``contract`` lets a product and a sum be one instruction; nothing assumes that values are finite.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from core.numerics.width import WIDTH

LINE = 64
"""bytes of a cache line, where blocks begin"""

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_NUMBER = ir.IntType(32)
_ALIGNED = min(LINE, 8 * WIDTH)

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


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of row ``arguments[1]`` of the block ``arguments[0]``."""
    block = context.make_array(signature.args[0])(context, builder, arguments[0])
    offset = builder.mul(arguments[1], ir.Constant(arguments[1].type, WIDTH))
    return builder.bitcast(builder.gep(block.data, [offset]), _VECTOR.as_pointer())


def _load_intrinsic(_typing: Any, block: Any, row: Any) -> tuple[Any, Emitter]:
    """``load(block, row)``: a row of a block whose rows are whole cache lines."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature, arguments), align=_ALIGNED)

    return LANES(block, row), emit


def _store_intrinsic(_typing: Any, block: Any, row: Any, lanes: Any) -> tuple[Any, Emitter]:
    """``store(block, row, lanes)``: write a row of such a block."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, signature, arguments), align=_ALIGNED)
        return context.get_dummy_value()

    return types.void(block, row, lanes), emit


def _spread_intrinsic(_typing: Any, number: Any) -> tuple[Any, Emitter]:
    """``spread(number)``: the same float64 in all lanes."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, arguments[0], ir.Constant(_NUMBER, 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_NUMBER, WIDTH), [0] * WIDTH))

    return LANES(number), emit


def _plus_intrinsic(_typing: Any, left: Any, right: Any) -> tuple[Any, Emitter]:
    """``plus(left, right)``: lane by lane."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments, flags=["contract"])

    return LANES(left, right), emit


def _times_intrinsic(_typing: Any, left: Any, right: Any) -> tuple[Any, Emitter]:
    """``times(left, right)``: lane by lane."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments, flags=["contract"])

    return LANES(left, right), emit


load: Any = intrinsic(_load_intrinsic)
store: Any = intrinsic(_store_intrinsic)
spread: Any = intrinsic(_spread_intrinsic)
plus: Any = intrinsic(_plus_intrinsic)
times: Any = intrinsic(_times_intrinsic)
