"""Search on bitboards: guess, propagate, go back."""

import numpy as np

from samm.data.compiled import ONE, ZERO, U, compiled, draw, stream
from samm.data.sudoku_bitboard import assign, load, popcount, propagate, write

NO_BUDGET = 1 << 62


@compiled
def choose(state, random, rows, cols):
    """Where to guess: (digit, band, bit), or digit -1 on a solved board.

    A random digit of a random cell with two candidates; without such a cell, a random place of a
    digit in a row where it has the fewest (ties broken at random).
    """
    n, bands = len(rows) * len(cols), len(cols)
    pairs = n * bands + bands
    total = 0
    for b in range(bands):
        total += np.int64(popcount(state[pairs + b]))
    if total > 0:
        skip = draw(random, total)
        band = 0
        while skip >= np.int64(popcount(state[pairs + band])):
            skip -= np.int64(popcount(state[pairs + band]))
            band += 1
        bit = nth_bit(state[pairs + band], skip)
        second = draw(random, 2)
        for d in range(n):
            if state[d * bands + band] & bit != ZERO:
                if second == 0:
                    return d, band, bit
                second -= 1
    full = U((1 << n) - 1)
    digit, band, place, fewest, ties = -1, 0, ZERO, n + 1, 0
    for d in range(n):
        for b in range(bands):
            for r in range(len(rows)):
                row = (state[d * bands + b] >> U(r * n)) & full
                size = np.int64(popcount(row))
                if 1 < size <= fewest:
                    ties = ties + 1 if size == fewest else 1
                    if draw(random, ties) == 0:
                        digit, band, place = d, b, row << U(r * n)
                    fewest = size
    if digit < 0:
        return -1, 0, ZERO
    return digit, band, nth_bit(place, draw(random, fewest))


@compiled
def nth_bit(word, index):
    """The set bit of `word` with `index` set bits below it."""
    for _ in range(index):
        word &= word - ONE
    return word & (~word + ONE)


@compiled
def workspace(rows, cols):
    """A stack of boards deep enough for any search."""
    n = len(rows) * len(cols)
    return np.empty((n * n + 2, (n + 2) * len(cols)), np.uint64)


@compiled
def search(stack, limit, solutions, random, max_guesses, rows, cols, tables):
    """Count solutions of the board in `stack[0]` up to `limit`, by guessing and propagating.

    The first `len(solutions)` of them are written down. Returns (count, guesses); the count is -1
    if `max_guesses` were not enough to tell.
    """
    n, bands = len(rows) * len(cols), len(cols)
    dirty = np.empty(len(stack), np.uint64)
    dirty[0] = U((1 << n) - 1)
    top, found, guesses = 0, 0, 0
    while top >= 0:
        here = stack[top]
        if not propagate(here, dirty[top], rows, cols, tables):
            top -= 1
            continue
        digit, band, bit = choose(here, random, rows, cols)
        if digit < 0:
            if found < len(solutions):
                write(here, solutions[found], rows, cols)
            found += 1
            if found >= limit:
                break
            top -= 1
            continue
        if guesses >= max_guesses:
            return -1, guesses
        guesses += 1
        # The guess goes on top; what it leaves, the board without this candidate, waits below.
        ahead = stack[top + 1]
        ahead[:] = here
        dirty[top + 1] = ZERO
        for d in range(n):
            if here[d * bands + band] & bit != ZERO:
                dirty[top + 1] |= ONE << U(d)
        assign(ahead, digit, band, bit, rows, cols)
        here[digit * bands + band] &= ~bit
        dirty[top] = ONE << U(digit)
        top += 1
    return found, guesses


@compiled
def solve_all(puzzles, limit, solutions, counts, rows, cols, tables):
    """One solution of each puzzle [N, n·n] and their number, up to `limit`."""
    stack = workspace(rows, cols)
    for i in range(len(puzzles)):
        if load(stack[0], puzzles[i], rows, cols):
            out = solutions[i : i + 1]
            counts[i], _ = search(stack, limit, out, stream(0, 0), NO_BUDGET, rows, cols, tables)


@compiled
def solve_one(puzzle, solutions, rows, cols, tables):
    """Fill `solutions` [limit, n·n] with the solutions of one puzzle and count them."""
    stack = workspace(rows, cols)
    if not load(stack[0], puzzle, rows, cols):
        return 0
    random = stream(0, 0)
    return search(stack, len(solutions), solutions, random, NO_BUDGET, rows, cols, tables)[0]
