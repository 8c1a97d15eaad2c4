"""Asking the processor for rows that a loop will need soon.

Kernels walk over rows that lie scattered in tables far larger than any cache, and would wait for memory at every one of
them: the work on a row is too long for the processor to look ahead to the next by itself.
"""

from __future__ import annotations

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LOOKAHEAD = 8  # rows; where four to sixteen take the same time, and none almost twice as long
LINE_BYTES = 64


@intrinsic
def _prefetch_line(typing_context, array, row, offset):
    """Load the cache line `offset` bytes into a row of a two-dimensional array."""

    def generate(context, builder, signature, arguments):
        pieces = context.make_array(signature.args[0])(context, builder, arguments[0])
        row, offset = (
            context.cast(builder, argument, kind, types.intp)
            for argument, kind in zip(arguments[1:], signature.args[1:])
        )
        stride = cgutils.unpack_tuple(builder, pieces.strides)[0]
        pointer = ir.IntType(8).as_pointer()
        line = builder.gep(builder.bitcast(pieces.data, pointer), [builder.add(builder.mul(row, stride), offset)])
        number = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0i8")
        builder.call(function, [line, number(0), number(3), number(1)])  # for reading, into all caches, data
        return context.get_dummy_value()

    return types.void(array, row, offset), generate


@numba.njit(inline="always")
def prefetch_row(array, row):
    """Load a row of a two-dimensional array into the caches, without waiting for it."""
    for offset in range(0, array.itemsize * array.shape[1], LINE_BYTES):
        _prefetch_line(array, row, offset)  # type: ignore[call-arg]  # Numba gives the context
