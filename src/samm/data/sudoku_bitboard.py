"""Bitboards and propagation: what the classical Sudoku solver knows about one board.

One board of `box_rows × box_cols` boxes (side n = box_rows·box_cols ≤ 16) is a flat array of 64-bit
words. Word `digit·bands + band` holds where the digit may still stand in that band: bit
`row_in_band·n + column`. `2·bands` words follow: the cells already fixed, and those with exactly
two candidates.

Propagation knows singles (naked and hidden) and locked candidates in both directions. The latter
is one table look-up: inside a band a digit occupies one box segment per row and one per box, so
the occupied segments must contain a permutation matrix, and a segment outside every such
permutation is impossible. The same holds for the columns of a stack.

Every function takes `rows` and `cols`, tuples of length box_rows and box_cols. Their *lengths* are
compile-time constants, so numba makes one unrolled program per board shape from this one source.
"""

from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from samm.data.compiled import ONE, ZERO, U, compiled


@intrinsic
def lowest(typingctx: Any, word: Any) -> Any:
    """Index of the lowest set bit of a non-zero 64-bit word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Number of set bits of a 64-bit word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _matchings(side: int) -> np.ndarray:
    """Pattern of side×side segments -> those that lie in some permutation matrix inside it."""
    pattern = np.arange(1 << (side * side), dtype=np.uint32)
    legal = np.zeros_like(pattern)
    for order in permutations(range(side)):
        matrix = np.uint32(sum(1 << (r * side + c) for r, c in enumerate(order)))
        legal |= np.where(pattern & matrix == matrix, matrix, np.uint32(0))
    return legal


@cache
def tables(box_rows: int, box_cols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Look-ups of one board shape.

    occupied  [2^n]          one row of candidates -> the boxes it touches
    band_mask [2^(R·R)]      touched segments of a band -> cells that stay possible (0: none)
    legal     [2^(C·C)]      touched columns of a stack -> columns that stay possible (0: none)
    """
    n = box_rows * box_cols
    row = np.arange(1 << n, dtype=np.uint32)
    box = np.uint32((1 << box_cols) - 1)
    occupied = np.zeros(1 << n, np.uint8)
    for s in range(box_rows):
        occupied |= (((row >> np.uint32(s * box_cols)) & box) != 0).astype(np.uint8) << np.uint8(s)
    segments = _matchings(box_rows)
    band_mask = np.zeros(len(segments), np.uint64)
    for r in range(box_rows):
        for s in range(box_rows):
            cells = U(((1 << box_cols) - 1) << (r * n + s * box_cols))
            band_mask |= np.where(segments >> (r * box_rows + s) & 1 == 1, cells, ZERO)
    return occupied, band_mask, _matchings(box_cols)


@compiled
def narrow(state, digit, rows, cols, tables):
    """Locked candidates of one digit, in rows and columns, until nothing changes.

    False: the digit has no place left somewhere.
    """
    occupied, band_mask, legal = tables
    box_rows, box_cols = len(rows), len(cols)
    n = box_rows * box_cols
    bands = box_cols
    full = U((1 << n) - 1)
    stack_bits = U((1 << box_cols) - 1)
    base = digit * bands
    while True:
        for b in range(bands):
            word = state[base + b]
            pattern = 0
            for r in range(box_rows):
                pattern |= np.int64(occupied[(word >> U(r * n)) & full]) << (r * box_rows)
            word &= band_mask[pattern]
            if word == ZERO:
                return False
            state[base + b] = word
        changed = False
        for s in range(box_rows):
            shift = U(s * box_cols)
            pattern = ZERO
            for b in range(bands):
                columns = state[base + b]
                for r in range(1, box_rows):
                    columns |= state[base + b] >> U(r * n)
                pattern |= ((columns >> shift) & stack_bits) << U(b * box_cols)
            keep = U(legal[pattern])
            if keep == ZERO:
                return False
            if keep != pattern:
                changed = True
                gone = pattern ^ keep
                for b in range(bands):
                    columns = ((gone >> U(b * box_cols)) & stack_bits) << shift
                    for r in range(box_rows):
                        state[base + b] &= ~(columns << U(r * n))
        if not changed:
            return True


@compiled
def propagate(state, dirty, rows, cols, tables):
    """Singles and locked candidates until nothing changes; `dirty` has a bit per changed digit.

    False: a contradiction.
    """
    box_rows, box_cols = len(rows), len(cols)
    n = box_rows * box_cols
    bands = box_cols
    full = U((1 << n) - 1)
    fixed = n * bands
    while True:
        while dirty != ZERO:
            digit = np.int64(lowest(dirty))
            dirty &= dirty - ONE
            if not narrow(state, digit, rows, cols, tables):
                return False
            for b in range(bands):
                word = state[digit * bands + b]
                singles = ZERO
                for r in range(box_rows):
                    row = (word >> U(r * n)) & full
                    if row & (row - ONE) == ZERO:
                        singles |= row << U(r * n)
                singles &= ~state[fixed + b]
                if singles != ZERO:
                    state[fixed + b] |= singles
                    for e in range(n):
                        if e != digit and state[e * bands + b] & singles != ZERO:
                            state[e * bands + b] &= ~singles
                            dirty |= ONE << U(e)
        for b in range(bands):
            once, twice, thrice = ZERO, ZERO, ZERO
            for d in range(n):
                word = state[d * bands + b]
                thrice |= twice & word
                twice |= once & word
                once |= word
            for r in range(box_rows):
                if (once >> U(r * n)) & full != full:
                    return False
            naked = once & ~twice & ~state[fixed + b]
            if naked != ZERO:
                for d in range(n):
                    place = state[d * bands + b] & naked
                    while place != ZERO:
                        k = lowest(place)
                        place &= place - ONE
                        row = full << (k // U(n) * U(n))
                        state[d * bands + b] &= ~row | (ONE << k)
                        dirty |= ONE << U(d)
            state[fixed + bands + b] = twice & ~thrice
        if dirty == ZERO:
            return True


@compiled
def load(state, puzzle, rows, cols):
    """Write `puzzle` [n·n] (0: blank, 1..n) into the board. False: two clues exclude each other."""
    n, bands = len(rows) * len(cols), len(cols)
    state[: n * bands] = ~ZERO >> U(64 - n * len(rows))
    state[n * bands :] = ZERO
    for cell in range(n * n):
        if puzzle[cell] > 0:
            band, bit = locate(cell, rows, cols)
            if not assign(state, np.int64(puzzle[cell]) - 1, band, bit, rows, cols):
                return False
    return True


@compiled
def locate(cell, rows, cols):
    """Band and bit of a cell that is counted row by row."""
    band_cells = len(rows) * len(rows) * len(cols)
    return cell // band_cells, ONE << U(cell % band_cells)


@compiled
def assign(state, digit, band, bit, rows, cols):
    """Keep only `digit` in the cell `bit` of `band`, and only that cell in its row.

    False: the digit is already excluded there.
    """
    n, bands = len(rows) * len(cols), len(cols)
    word = state[digit * bands + band]
    if word & bit == ZERO:
        return False
    for e in range(n):
        state[e * bands + band] &= ~bit
    row = U((1 << n) - 1) << (lowest(bit) // U(n) * U(n))
    state[digit * bands + band] = (word & ~row) | bit
    return True


@compiled
def write(state, out, rows, cols):
    """Read a solved board into `out` [n·n]."""
    n, bands = len(rows) * len(cols), len(cols)
    for digit in range(n):
        for band in range(bands):
            word = state[digit * bands + band]
            while word != ZERO:
                out[band * len(rows) * n + np.int64(lowest(word))] = digit + 1
                word &= word - ONE
