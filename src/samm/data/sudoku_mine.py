"""Making Sudokus: random grids, random minimal puzzles, and a search for hard ones.

The hard-puzzle search walks between neighbours. A neighbour of a puzzle loses one or two clues
and gains others until its solution is unique again; then redundant clues go, so that it is minimal
({-1+1}, {-2+2} and their near relations), and it is rated. The walk climbs until the rating is
reached, and from there on emits every new puzzle that it accepts. New clues are often read off
another solution than the old one, so that the walk also moves from grid to grid.
"""

import numpy as np

from samm.data.compiled import compiled, draw, stream
from samm.data.sudoku_bitboard import load, locate
from samm.data.sudoku_search import NO_BUDGET, search, workspace

EXTRA = 4  # clues that an exchange may add beyond those it took away, before redundant ones go
PATIENCE = 1500  # neighbours without progress until the walk is restarted or kicked


@compiled
def shuffle(items, random):
    for i in range(len(items) - 1, 0, -1):
        j = draw(random, i + 1)
        items[i], items[j] = items[j], items[i]


@compiled
def random_grid(grid, stack, random, rows, cols, tables):
    """Fill `grid` [n·n] by searching an empty board at random (every grid can occur)."""
    grid[:] = 0
    load(stack[0], grid, rows, cols)
    search(stack, 1, grid.reshape(1, len(grid)), random, NO_BUDGET, rows, cols, tables)


@compiled
def needed(puzzle, cell, stack, random, budget, rows, cols, tables):
    """Is the clue at `cell` of a puzzle with one solution needed for that?

    It is, if and only if the other clues also allow another digit there. A search that runs out
    of its budget of guesses counts as yes.
    """
    n, bands = len(rows) * len(cols), len(cols)
    digit = np.int64(puzzle[cell])
    puzzle[cell] = 0
    load(stack[0], puzzle, rows, cols)
    puzzle[cell] = digit
    band, bit = locate(cell, rows, cols)
    stack[0][(digit - 1) * bands + band] &= ~bit
    unused = np.empty((0, n * n), np.uint8)
    found, _ = search(stack, 1, unused, random, budget, rows, cols, tables)
    return found != 0


@compiled
def minimise_clues(puzzle, stack, random, budget, rows, cols, tables):
    """Remove redundant clues in random order until every clue is needed."""
    cells = np.flatnonzero(puzzle)
    shuffle(cells, random)
    for cell in cells:
        if not needed(puzzle, cell, stack, random, budget, rows, cols, tables):
            puzzle[cell] = 0


@compiled
def rating(puzzle, runs, stack, random, rows, cols, tables):
    """Guesses until the first solution, mean of `runs` randomised searches."""
    unused = np.empty((0, len(puzzle)), np.uint8)
    total = 0
    for _ in range(runs):
        if not load(stack[0], puzzle, rows, cols):
            return 0.0
        total += search(stack, 1, unused, random, NO_BUDGET, rows, cols, tables)[1]
    return total / runs


@compiled
def neighbour(puzzle, exchanged, out, solutions, stack, random, rows, cols, tables):
    """Write into `out` a puzzle with one solution that differs from `puzzle` in few clues.

    `exchanged` random clues go. The new ones are read off one random solution of what is left.
    Each stands where that solution differs from all others met since the clue before it; the
    latest moves to a better place as long as there is one. False: this would take more than
    EXTRA clues more than were taken away.
    """
    out[:] = puzzle
    clues = np.flatnonzero(puzzle)
    for _ in range(exchanged):
        out[clues[draw(random, len(clues))]] = 0
    open_cells = np.flatnonzero(out == 0)
    load(stack[0], out, rows, cols)
    search(stack, 1, solutions, random, NO_BUDGET, rows, cols, tables)
    answer = solutions[0].copy()
    differs = np.ones(len(puzzle), np.bool_)  # from all others since the clue before the latest
    latest, added = -1, 0
    while True:
        load(stack[0], out, rows, cols)
        found, _ = search(stack, 2, solutions, random, NO_BUDGET, rows, cols, tables)
        if found < 2:
            return True
        other = solutions[1] if np.array_equal(solutions[0], answer) else solutions[0]
        better = differs & (other != answer)
        places = open_cells[better[open_cells]]
        if added < exchanged or len(places) == 0:  # one clue more, which need only exclude `other`
            if added == exchanged + EXTRA:
                return False
            better = other != answer
            places = open_cells[better[open_cells]]
            added += 1
        else:
            out[latest] = 0
        differs[:] = better
        latest = places[draw(random, len(places))]
        out[latest] = answer[latest]


@compiled
def mine(seed, chain, least, runs, tries, puzzles, answers, ratings, rows, cols, tables):
    """One walk of the hard-puzzle search; everything depends on (seed, chain) alone.

    Fills the arrays with different puzzles rated >= `least` and returns how many: fewer than asked
    only if `tries` neighbours were not enough.
    """
    cells = len(puzzles[0])
    random = stream(seed, chain)
    stack = workspace(rows, cols)
    solutions = np.empty((2, cells), np.uint8)
    here, there, home = (
        np.empty(cells, np.uint8),
        np.empty(cells, np.uint8),
        np.empty(cells, np.uint8),
    )
    level, found, idle = 0.0, 0, PATIENCE
    for _ in range(tries):
        if idle == PATIENCE:
            idle = 0
            if found > 0:  # stuck: go on from a distant neighbour of the last success
                neighbour(home, 2, here, solutions, stack, random, rows, cols, tables)
            else:
                random_grid(here, stack, random, rows, cols, tables)
            minimise_clues(here, stack, random, NO_BUDGET, rows, cols, tables)
            level = rating(here, runs, stack, random, rows, cols, tables)
        idle += 1
        bar = min(level, least)
        exchanged = 2 if draw(random, 4) == 0 else 1
        if not neighbour(here, exchanged, there, solutions, stack, random, rows, cols, tables):
            continue
        # Two glances save most of the work: redundant clues make a puzzle easier, but rarely by
        # a factor of five, and two runs seldom rate a hard puzzle below half.
        if rating(there, 2, stack, random, rows, cols, tables) < 0.2 * bar:
            continue
        minimise_clues(there, stack, random, NO_BUDGET, rows, cols, tables)
        if rating(there, 2, stack, random, rows, cols, tables) < 0.5 * bar:
            continue
        value = rating(there, runs, stack, random, rows, cols, tables)
        if value < bar or np.array_equal(here, there):
            continue
        here, there = there, here
        if value > bar:
            idle = 0
        level = value
        if value >= least and not _contains(puzzles[:found], here):
            home[:] = here
            puzzles[found] = here
            load(stack[0], here, rows, cols)
            search(stack, 1, answers[found : found + 1], random, NO_BUDGET, rows, cols, tables)
            ratings[found] = value
            found += 1
            idle = 0
            if found == len(puzzles):
                break
    return found


@compiled
def _contains(puzzles, puzzle):
    for i in range(len(puzzles)):
        if np.array_equal(puzzles[i], puzzle):
            return True
    return False


@compiled
def rate_all(puzzles, runs, seed, ratings, rows, cols, tables):
    """Rate each puzzle [N, n·n] with the same random stream."""
    stack = workspace(rows, cols)
    for i in range(len(puzzles)):
        ratings[i] = rating(puzzles[i], runs, stack, stream(seed, 0), rows, cols, tables)


@compiled
def random_all(seed, first, puzzles, grids, budget, rows, cols, tables):
    """Random grids [N, n·n] and minimal puzzles of them, each from its own random stream."""
    stack = workspace(rows, cols)
    for i in range(len(puzzles)):
        random = stream(seed, first + i)
        random_grid(grids[i], stack, random, rows, cols, tables)
        puzzles[i] = grids[i]
        minimise_clues(puzzles[i], stack, random, budget, rows, cols, tables)


@compiled
def minimal(puzzle, rows, cols, tables):
    """Is every clue of a puzzle with one solution needed for that?"""
    stack = workspace(rows, cols)
    copy = puzzle.copy()
    for cell in np.flatnonzero(puzzle):
        if not needed(copy, cell, stack, stream(0, 0), NO_BUDGET, rows, cols, tables):
            return False
    return True
