"""The vector operations behind the compiled kernels, in LLVM's own terms so that sums stay in registers.

A vector is as wide as the layout says (64 or 16 numbers); LLVM splits it into whatever registers the machine has.
Products are added by `llvm.fmuladd`: fused where the machine can, in the same way for every width. numba's cache
looks at the file of the function that is compiled only: after a change here, touch `kernels.py` and
`hinge_kernel.py`.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from fedelect.federation.linear.layout import LANES, NARROW

cgutils: Any = numba_cgutils  # partly typed


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that compiled code can call, without the first argument."""
    return cast(Callable[..., Any], intrinsic(function))


def pointer(context: Any, builder: Any, array_type: Any, array: Any, place: Any, vector: Any = None) -> Any:
    """Pointer to a place of an array; to a vector there, if one is given."""
    data = context.make_array(array_type)(context, builder, array).data
    there = builder.gep(data, [place])
    return there if vector is None else builder.bitcast(there, vector.as_pointer())


def lanes(context: Any, array_type: Any, width: int) -> tuple[Any, Any, int]:
    """Types of a number and of a vector of an array, and the alignment in bytes that any place has."""
    element = context.get_data_type(array_type.dtype)
    return element, ir.VectorType(element, width), array_type.dtype.bitwidth // 8


def spread(builder: Any, value: Any, vector: Any) -> Any:
    """A vector that holds the value in all lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, mask)


def multiply_add(builder: Any, one: Any, other: Any, to: Any) -> Any:
    """One * other + to, rounded once where the machine can."""
    vector = one.type
    letter = "f32" if isinstance(vector.element, ir.FloatType) else "f64"
    name = f"llvm.fmuladd.v{vector.count}{letter}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
    return builder.call(function, [one, other, to])


def _row_adder(width: int, turns: int = 1) -> Any:
    """Intrinsic: sums[at : at + width] += sum of weights[k] * rows[base + width * picks[k] : ...], k = first .. last-1.

    With several turns, that many partial sums take the rows in turn, so that narrow vectors need not wait for each
    other. The order of addition is then another.
    """

    @operation
    def add_rows(
        _: Any, rows: Any, base: Any, picks: Any, weights: Any, first: Any, last: Any, sums: Any, at: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            rows_, base_, picks_, weights_, first_, last_, sums_, at_ = values
            _, vector, align = lanes(context, rows, width)
            out = pointer(context, builder, sums, sums_, at_, vector)
            totals = [cgutils.alloca_once_value(builder, ir.Constant(vector, None)) for _ in range(turns)]
            builder.store(builder.load(out, align=align), totals[0])

            def add(k: Any, total: Any) -> None:
                pick = builder.load(pointer(context, builder, picks, picks_, k))
                place = builder.add(base_, builder.mul(builder.sext(pick, base_.type), base_.type(width)))
                row = builder.load(pointer(context, builder, rows, rows_, place, vector), align=align)
                weight = builder.load(pointer(context, builder, weights, weights_, k))
                builder.store(multiply_add(builder, row, spread(builder, weight, vector), builder.load(total)), total)

            rounds = builder.sdiv(builder.sub(last_, first_), first_.type(turns))
            with cgutils.for_range(builder, rounds) as loop:
                for turn, total in enumerate(totals):
                    k = builder.add(builder.mul(loop.index, first_.type(turns)), first_.type(turn))
                    add(builder.add(first_, k), total)
            rest = builder.add(first_, builder.mul(rounds, first_.type(turns)))
            with cgutils.for_range(builder, last_, start=rest) as loop:
                add(loop.index, totals[0])
            whole = builder.load(totals[0])
            for total in totals[1:]:
                whole = builder.fadd(whole, builder.load(total))
            builder.store(whole, out, align=align)
            return context.get_dummy_value()

        return types.none(rows, types.int64, picks, weights, types.int64, types.int64, sums, types.int64), generate

    return add_rows


add_rows = _row_adder(LANES)
add_narrow_rows = _row_adder(NARROW)
add_rows_in_turns = _row_adder(NARROW, turns=4)


@operation
def advance(_: Any, scores: Any, at: Any, sums: Any, there: Any, rate: Any, positive: Any) -> Any:
    """scores[at : at + 64] += rate * sums[there : there + 64]; returns the bits of the violated margins, y s < 1."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scores_, at_, sums_, there_, rate_, positive_ = values
        _, vector, align = lanes(context, scores, LANES)
        place = pointer(context, builder, scores, scores_, at_, vector)
        change = builder.load(pointer(context, builder, sums, sums_, there_, vector), align=align)
        new = multiply_add(builder, change, spread(builder, rate_, vector), builder.load(place, align=align))
        builder.store(new, place, align=align)
        word = ir.IntType(LANES)
        below = builder.bitcast(builder.fcmp_ordered("<", new, ir.Constant(vector, [1.0] * LANES)), word)
        above = builder.bitcast(builder.fcmp_ordered(">", new, ir.Constant(vector, [-1.0] * LANES)), word)
        return builder.or_(builder.and_(below, positive_), builder.and_(above, builder.not_(positive_)))

    return types.uint64(scores, types.int64, sums, types.int64, scores.dtype, types.uint64), generate


@operation
def spread_row(_: Any, rows: Any, base: Any, picks: Any, weights: Any, first: Any, last: Any, row: Any, at: Any) -> Any:
    """Intrinsic: rows[base + 16 * picks[k] : ...] += weights[k] * row[at : at + 16], k = first .. last-1."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows_, base_, picks_, weights_, first_, last_, row_, at_ = values
        _, vector, align = lanes(context, rows, NARROW)
        change = builder.load(pointer(context, builder, row, row_, at_, vector), align=align)
        with cgutils.for_range(builder, last_, start=first_) as loop:
            pick = builder.load(pointer(context, builder, picks, picks_, loop.index))
            place = builder.add(base_, builder.mul(builder.sext(pick, base_.type), base_.type(NARROW)))
            out = pointer(context, builder, rows, rows_, place, vector)
            weight = spread(builder, builder.load(pointer(context, builder, weights, weights_, loop.index)), vector)
            builder.store(multiply_add(builder, change, weight, builder.load(out, align=align)), out, align=align)
        return context.get_dummy_value()

    return types.none(rows, types.int64, picks, weights, types.int64, types.int64, row, types.int64), generate


@operation
def lowest(_: Any, word: Any) -> Any:
    """Number of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
