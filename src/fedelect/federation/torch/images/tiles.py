"""The vector operations behind `winograd.py`, in LLVM's own terms so that tiles and sums stay in registers.

F(4 x 4, 3 x 3) of Winograd (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", Sec. 4.3): 4 x 4
outputs Y of a filter g on 6 x 6 inputs d are Y = A' [(G g G') * (B' d B)] A, 36 products in the place of 144. A vector
holds 16 channels at one place of a map. Maps are flat arrays in the order (image, row, column, channel); a tile's 36
products lie `apart` numbers from each other. numba's cache looks at the file of the function that is compiled only:
after a change here, touch `winograd.py`.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types

from fedelect.federation.linear.vectors import lanes, multiply_add, operation, pointer, spread

cgutils: Any = numba_cgutils  # partly typed

LANES, SIDE, MADE, FILTER = 16, 6, 4, 3
"""Channels of a vector; sides of the inputs, the outputs and the filter of a tile."""

ROWS = 14
"""Tiles that are multiplied at a time: with two vectors each their sums fill the registers of AVX-512."""

_I = types.int64


class _Terms:
    """Vectors in sums; c times a vector by a constant."""

    def __init__(self, builder: Any, vector: Any) -> None:
        self._builder, self._vector = builder, vector
        self.add, self.sub = builder.fadd, builder.fsub

    def times(self, factor: float, one: Any) -> Any:
        return self._builder.fmul(self._constant(factor), one)

    def times_and(self, factor: float, one: Any, other: Any) -> Any:
        """Factor * one + other."""
        return multiply_add(self._builder, self._constant(factor), one, other)

    def _constant(self, factor: float) -> Any:
        return ir.Constant(self._vector, [factor] * LANES)


def _inputs(terms: _Terms, d: list[Any]) -> list[Any]:
    """B' d."""
    even, odd = terms.times_and(-4, d[2], d[4]), terms.times_and(-4, d[1], d[3])
    rise, twice = terms.sub(d[4], d[2]), terms.times(2, terms.sub(d[3], d[1]))
    return [
        terms.times_and(4, d[0], terms.times_and(-5, d[2], d[4])),
        terms.add(even, odd),
        terms.sub(even, odd),
        terms.add(rise, twice),
        terms.sub(rise, twice),
        terms.times_and(4, d[1], terms.times_and(-5, d[3], d[5])),
    ]


def _filters(terms: _Terms, g: list[Any]) -> list[Any]:
    """G g."""
    outer = terms.add(g[0], g[2])
    wide = terms.times_and(4, g[2], g[0])
    return [
        terms.times(1 / 4, g[0]),
        terms.times(-1 / 6, terms.add(outer, g[1])),
        terms.times(-1 / 6, terms.sub(outer, g[1])),
        terms.times(1 / 24, terms.times_and(2, g[1], wide)),
        terms.times(1 / 24, terms.times_and(-2, g[1], wide)),
        g[2],
    ]


def _outputs(terms: _Terms, m: list[Any]) -> list[Any]:
    """A' m."""
    near, turn = terms.add(m[1], m[2]), terms.sub(m[1], m[2])
    far, twist = terms.add(m[3], m[4]), terms.sub(m[3], m[4])
    return [
        terms.add(m[0], terms.add(near, far)),
        terms.times_and(2, twist, turn),
        terms.times_and(4, far, near),
        terms.add(terms.times_and(8, twist, turn), m[5]),
    ]


def _slopes(terms: _Terms, y: list[Any]) -> list[Any]:
    """A y."""
    even, odd = terms.add(y[0], y[2]), terms.add(y[1], y[3])
    wide, far = terms.times_and(4, y[2], y[0]), terms.times(2, terms.times_and(4, y[3], y[1]))
    return [y[0], terms.add(even, odd), terms.sub(even, odd), terms.add(wide, far), terms.sub(wide, far), y[3]]


def _filter_slopes(terms: _Terms, u: list[Any]) -> list[Any]:
    """G' u."""
    near, far = terms.times(-1 / 6, terms.add(u[1], u[2])), terms.times(1 / 24, terms.add(u[3], u[4]))
    turn = terms.times(1 / 6, terms.sub(u[2], u[1]))
    return [
        terms.times_and(1 / 4, u[0], terms.add(near, far)),
        terms.times_and(1 / 12, terms.sub(u[3], u[4]), turn),
        terms.add(terms.times_and(4, far, near), u[5]),
    ]


_Transform = Callable[[_Terms, list[Any]], list[Any]]


def _both_ways(transform: _Transform, terms: _Terms, tile: list[list[Any]]) -> Any:
    """The transform of all columns, then of all rows of what came out."""
    columns = [transform(terms, list(column)) for column in zip(*tile, strict=True)]
    return [transform(terms, list(row)) for row in zip(*columns, strict=True)]


class _Maker:
    """Makes the code of one operation."""

    def __init__(self, context: Any, builder: Any, like: Any) -> None:
        self.context, self.builder = context, builder
        _, self.vector, self.align = lanes(context, like, LANES)
        self.terms = _Terms(builder, self.vector)

    def at(self, array_type: Any, array: Any, place: Any) -> Any:
        return pointer(self.context, self.builder, array_type, array, place, self.vector)

    def load(self, place: Any) -> Any:
        return self.builder.load(place, align=self.align)

    def store(self, value: Any, place: Any) -> None:
        self.builder.store(value, place, align=self.align)

    def along(self, start: Any, step: Any, count: int) -> Any:
        return self.builder.add(start, self.builder.mul(step, start.type(count)))

    def grid(self, array_type: Any, array: Any, start: Any, apart: Any, side: int) -> list[list[Any]]:
        places = [self.at(array_type, array, self.along(start, apart, i)) for i in range(side * side)]
        return [places[row * side : (row + 1) * side] for row in range(side)]

    def inside(self, first: Any, length: Any, count: int) -> list[tuple[Any, Any]]:
        """Places from `first` on, and whether they are in 0 .. length-1."""
        places = [self.builder.add(first, first.type(i)) for i in range(count)]
        return [(place, self.builder.icmp_unsigned("<", place, length)) for place in places]

    def window(self, array_type: Any, array: Any, start: Any, channels: Any, corner: Any, size: Any, spare: Any) -> Any:
        """Pointers to a square of a map; to `spare` outside of it."""
        (top, left, side), (height, width) = corner, size
        rows, columns = self.inside(top, height, side), self.inside(left, width, side)
        made: list[list[Any]] = []
        for row, row_there in rows:
            made.append([])
            for column, there in columns:
                pixel = self.builder.add(self.builder.mul(row, width), column)
                place = self.at(array_type, array, self.builder.add(start, self.builder.mul(pixel, channels)))
                made[-1].append(self.builder.select(self.builder.and_(row_there, there), place, spare))
        return made


def _of_filter(transform: _Transform, taken: int, made: int) -> Any:
    """Intrinsic: transforms 16 squares of a side `taken` to a side `made`, whose numbers lie `step` and `apart`."""

    @operation
    def transform_filter(_: Any, source: Any, start: Any, step: Any, target: Any, there: Any, apart: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            source_, start_, step_, target_, there_, apart_ = values
            make = _Maker(context, builder, source)
            given = [[make.load(place) for place in row] for row in make.grid(source, source_, start_, step_, taken)]
            out = _both_ways(transform, make.terms, given)
            for row, places in zip(out, make.grid(target, target_, there_, apart_, made), strict=True):
                for value, place in zip(row, places, strict=True):
                    make.store(value, place)
            return context.get_dummy_value()

        return types.none(source, _I, _I, target, _I, _I), generate

    return transform_filter


transform_filter = _of_filter(_filters, FILTER, SIDE)
transform_filter_back = _of_filter(_filter_slopes, SIDE, FILTER)


def _of_map(transform: _Transform, side: int) -> Any:
    """Intrinsic: transforms the square at (top, left) of a map; outside of the map lie `zeros`, 16 of them."""

    @operation
    def transform_map(
        _: Any,
        maps: Any,
        start: Any,
        channels: Any,
        top: Any,
        left: Any,
        height: Any,
        width: Any,
        zeros: Any,
        target: Any,
        there: Any,
        apart: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            maps_, start_, channels_, top_, left_, height_, width_, zeros_, target_, there_, apart_ = values
            make = _Maker(context, builder, maps)
            spare = make.at(zeros, zeros_, start_.type(0))
            window = make.window(maps, maps_, start_, channels_, (top_, left_, side), (height_, width_), spare)
            made = _both_ways(transform, make.terms, [[make.load(place) for place in row] for row in window])
            for row, places in zip(made, make.grid(target, target_, there_, apart_, SIDE), strict=True):
                for value, place in zip(row, places, strict=True):
                    make.store(value, place)
            return context.get_dummy_value()

        return types.none(maps, _I, _I, _I, _I, _I, _I, zeros, target, _I, _I), generate

    return transform_map


transform_inputs, transform_slopes = _of_map(_inputs, SIDE), _of_map(_slopes, MADE)


@operation
def transform_outputs(
    _: Any,
    products: Any,
    there: Any,
    apart: Any,
    maps: Any,
    start: Any,
    channels: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    bias: Any,
    first: Any,
    spare: Any,
) -> Any:
    """Put A' m A + bias into the tile at (top, left) of a map, and what lies outside of the map into `spare`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        products_, there_, apart_, maps_, start_, channels_, top_, left_, height_, width_, *rest = values
        bias_, first_, spare_ = rest
        make = _Maker(context, builder, products)
        given = [[make.load(place) for place in row] for row in make.grid(products, products_, there_, apart_, SIDE)]
        made = _both_ways(_outputs, make.terms, given)
        added = make.load(make.at(bias, bias_, first_))
        waste = make.at(spare, spare_, start_.type(0))
        window = make.window(maps, maps_, start_, channels_, (top_, left_, MADE), (height_, width_), waste)
        for row, places in zip(made, window, strict=True):
            for value, place in zip(row, places, strict=True):
                make.store(make.terms.add(value, added), place)
        return context.get_dummy_value()

    return types.none(products, _I, _I, maps, _I, _I, _I, _I, _I, _I, bias, _I, spare), generate


def _multiplier(height: int, vectors: int, *, adds: bool) -> Any:
    """Intrinsic: target[r, :] = sum over k of rows[r, k] * columns[k, :], `height` rows and 16 * `vectors` columns.

    If it adds, the sums go on from what the target holds. `*_step` is from one row to the next, `along` from one k to
    the next. Each sum goes over k in order, whatever lies in the other rows.
    """

    @operation
    def multiply(
        _: Any,
        rows: Any,
        at: Any,
        step: Any,
        along: Any,
        columns: Any,
        from_: Any,
        column_step: Any,
        length: Any,
        target: Any,
        there: Any,
        target_step: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            rows_, at_, step_, along_, columns_, from_at, column_step_, length_, target_, there_, target_step_ = values
            make = _Maker(context, builder, rows)
            zeros = ir.Constant(make.vector, None)
            sums = [[cgutils.alloca_once_value(builder, zeros) for _ in range(vectors)] for _ in range(height)]
            starts = [pointer(context, builder, rows, rows_, make.along(at_, step_, row)) for row in range(height)]
            places = []
            for index in range(height):
                first = make.along(there_, target_step_, index)
                parts = [builder.add(first, at_.type(LANES * i)) for i in range(vectors)]
                places.append([make.at(target, target_, part) for part in parts])
            for row, there_row in zip(sums, places, strict=True):
                for total, place in zip(row, there_row, strict=True):
                    builder.store(make.load(place) if adds else zeros, total)
            with cgutils.for_range(builder, length_) as loop:
                across = builder.add(from_at, builder.mul(loop.index, column_step_))
                parts = [
                    make.load(make.at(columns, columns_, builder.add(across, at_.type(LANES * i))))
                    for i in range(vectors)
                ]
                for start, row in zip(starts, sums, strict=True):
                    number = builder.load(builder.gep(start, [builder.mul(loop.index, along_)]))
                    factor = spread(builder, number, make.vector)
                    for part, total in zip(parts, row, strict=True):
                        builder.store(multiply_add(builder, factor, part, builder.load(total)), total)
            for row, there_row in zip(sums, places, strict=True):
                for total, place in zip(row, there_row, strict=True):
                    make.store(builder.load(total), place)
            return context.get_dummy_value()

        return types.none(rows, _I, _I, _I, columns, _I, _I, _I, target, _I, _I), generate

    return multiply


multiply_narrow, multiply_wide = _multiplier(ROWS, 1, adds=False), _multiplier(ROWS, 2, adds=False)
multiply_square = _multiplier(LANES, 1, adds=True)
