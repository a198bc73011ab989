"""Canonical forms: which Sudoku grids and puzzles are the same up to symmetry.

The symmetries of a board of R × C boxes: any relabelling of the n digits, any order of the bands
and of the rows inside a band, any order of the stacks and of the columns inside a stack, and, for
square boxes, transposition: 2·6⁸·9! of them for 9×9.

The canonical grid is the smallest image, read row by row. Choose transposition, first row and
order of columns; the digits are then labelled by the first row, and rows and bands are sorted by
their first column: everything else is forced. The canonical puzzle is the smallest image of the
puzzle under those symmetries that make its solution grid smallest: two puzzles are equivalent if
and only if they have the same pair.
"""

from functools import cache
from itertools import permutations, product

import numpy as np

from samm.data.compiled import compiled

LARGEST_SIDE = 12  # beyond, the orders of the columns are too many to try: 8 million for 16×16


@cache
def column_orders(box_rows: int, box_cols: int) -> np.ndarray:
    """All orders of the columns that keep stacks together.  [(C!)^R · R!, n]

    Sorted by their entries 0 and C, the first columns of the first two stacks: each of the
    n·(n - C) such pairs heads a block of equally many orders.
    """
    inside = list(permutations(range(box_cols)))
    orders = [
        [stack * box_cols + c for stack, perm in zip(stacks, perms, strict=True) for c in perm]
        for stacks in permutations(range(box_rows))
        for perms in product(inside, repeat=box_rows)
    ]
    orders.sort(key=lambda order: (order[0], order[box_cols]))
    return np.array(orders, np.uint8)


@compiled
def minimise(grid, puzzle, box_rows, box_cols, orders, best, best_puzzle):
    """Write the canonical grid into `best` [n, n] and the canonical puzzle into `best_puzzle`.

    `grid` and `puzzle` are [n, n]; digits 1..n, 0 is a blank of the puzzle.
    """
    n = box_rows * box_cols
    block = len(orders) // (n * (n - box_cols))
    best[:] = n + 1
    column_of = np.zeros(n + 1, np.int64)
    label = np.zeros(n + 1, np.uint8)
    row_order = np.zeros(n, np.int64)
    for transposed in range(2 if box_rows == box_cols else 1):
        g, p = (grid, puzzle) if transposed == 0 else (grid.T, puzzle.T)
        for first in range(n):
            for c in range(n):
                column_of[g[first, c]] = c
            band = first // box_rows * box_rows
            for second in range(band, band + box_rows):
                if second == first:
                    continue
                for c in range(n):
                    # The smallest image has C + 1 below its first cell: the first row's digit at
                    # the head of the second stack. That leaves one block of orders.
                    head = column_of[g[second, c]]
                    rank = head if head < c else head - box_cols
                    start = (c * (n - box_cols) + rank) * block
                    for columns in orders[start : start + block]:
                        for j in range(n):
                            label[g[first, columns[j]]] = j + 1
                        if _compare(g[second], columns, label, best[1]) <= 0:
                            _sort_rows(g, columns, label, box_rows, row_order)
                            _keep_smaller(g, p, row_order, columns, label, best, best_puzzle)


@compiled
def _keep_smaller(g, p, row_order, columns, label, best, best_puzzle):
    """Replace the best grid, or on a tie (an automorphism) the best puzzle, by a smaller image."""
    n = len(columns)
    order = 0
    for i in range(n):
        if order == 0:
            order = _compare(g[row_order[i]], columns, label, best[i])
    if order > 0:
        return
    if order < 0:
        for i in range(n):
            for j in range(n):
                best[i, j] = label[g[row_order[i], columns[j]]]
                best_puzzle[i, j] = label[p[row_order[i], columns[j]]]
        return
    for i in range(n):
        if order == 0:
            order = _compare(p[row_order[i]], columns, label, best_puzzle[i])
    if order < 0:
        for i in range(n):
            for j in range(n):
                best_puzzle[i, j] = label[p[row_order[i], columns[j]]]


@compiled
def minimise_all(grids, puzzles, best, best_puzzles, box_rows, box_cols, orders):
    for i in range(len(grids)):
        minimise(grids[i], puzzles[i], box_rows, box_cols, orders, best[i], best_puzzles[i])


@compiled
def _compare(row, columns, label, other):
    """Sign of (relabelled, reordered `row`) - `other`."""
    for j in range(len(columns)):
        mine = label[row[columns[j]]]
        if mine != other[j]:
            return -1 if mine < other[j] else 1
    return 0


@compiled
def _sort_rows(g, columns, label, box_rows, row_order):
    """Rows by their first cell, but bands stay together: a band comes where its least row does."""
    n = len(columns)
    row_with = np.empty(n + 1, np.int64)
    for r in range(n):
        row_with[label[g[r, columns[0]]]] = r
    placed = 0
    for value in range(1, n + 1):
        band = row_with[value] // box_rows
        seen = False
        for i in range(placed):
            seen |= row_order[i] // box_rows == band
        if not seen:
            for other in range(value, n + 1):
                if row_with[other] // box_rows == band:
                    row_order[placed] = row_with[other]
                    placed += 1


@compiled
def fingerprint(grid, box_rows, box_cols):
    """An invariant of the grid for boards too large for `minimise`: equivalent grids agree.

    Two rows of one band map column to column (where the one has the digit that the other has
    here); relabelling and reordering keep the lengths of that map's cycles. Counted over all pairs
    of rows in all bands, and the same for columns, in no particular order.
    """
    across = _cycle_sum(grid, box_rows)
    down = _cycle_sum(grid.T, box_cols)
    if box_rows != box_cols:
        return across * np.uint64(3) + down
    return across + down


@compiled
def _cycle_sum(g, rows_per_band):
    n = len(g)
    where = np.empty(n + 1, np.int64)
    total = np.uint64(0)
    for band in range(0, n, rows_per_band):
        in_band = np.uint64(0)
        for a in range(band, band + rows_per_band):
            for b in range(a + 1, band + rows_per_band):
                for c in range(n):
                    where[g[a, c]] = c
                done = np.zeros(n, np.bool_)
                cycles = np.uint64(0)
                for start in range(n):
                    length, c = 0, start
                    while not done[c]:
                        done[c] = True
                        c = where[g[b, c]]
                        length += 1
                    if length > 0:
                        cycles += _mix(np.uint64(length))
                in_band += _mix(cycles)
        total += _mix(in_band)
    return total


@compiled
def _mix(x):
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))
