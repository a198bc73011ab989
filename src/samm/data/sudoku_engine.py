"""The classical Sudoku engine: solve, count, rate, canonical forms, and making puzzles.

Puzzles and grids are uint8 arrays [N, n·n], row by row, 0 for a blank and 1..n for a digit.
Everything is compiled, runs in parallel over puzzles (numba releases the interpreter's lock, so
plain threads do), has no global state, and depends on its arguments alone: the same seed gives
the same puzzles whatever the number of threads.

The networks never use it: it makes and checks data.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samm.data import sudoku_bitboard as bitboard
from samm.data import sudoku_canonical as canon
from samm.data import sudoku_mine as miner
from samm.data import sudoku_search as searcher
from samm.errors import InputError

Boards = NDArray[np.uint8]
Box = tuple[int, int]
NINE: Box = (3, 3)
CHAIN = 128
"""Puzzles per walk of the hard-puzzle search: its chains are the unit of `hard_puzzles`."""
BUDGET = {12: 2_000, 16: 500}
"""Guesses that the test of one clue may take, by side. On large boards a clue that is not shown to
be redundant within them stays: such puzzles have one solution, but may not be minimal."""


def solve(puzzles: ArrayLike, box: Box = NINE, threads: int | None = None) -> Boards:
    """A solution of each puzzle, or zeros where there is none.  [N, n·n] -> [N, n·n]"""
    return solve_and_count(puzzles, 1, box, threads)[0]


def count_solutions(
    puzzles: ArrayLike, limit: int = 2, box: Box = NINE, threads: int | None = None
) -> NDArray[np.int64]:
    """How many solutions each puzzle has, counting no further than `limit`.  [N]"""
    return solve_and_count(puzzles, limit, box, threads)[1]


def solve_and_count(
    puzzles: ArrayLike, limit: int = 2, box: Box = NINE, threads: int | None = None
) -> tuple[Boards, NDArray[np.int64]]:
    """One solution of each puzzle and their number up to `limit`, in one pass."""
    boards = _boards(puzzles, box, "puzzles")
    solutions = np.zeros_like(boards)
    counts = np.zeros(len(boards), np.int64)

    def work(part: slice) -> None:
        searcher.solve_all(boards[part], limit, solutions[part], counts[part], *_shape(box))

    _parallel(work, len(boards), threads)
    return solutions, counts


def solutions(puzzle: ArrayLike, limit: int, box: Box = NINE) -> Boards:
    """All solutions of one puzzle, but no more than `limit`.  [n·n] -> [count, n·n]"""
    board = _boards(puzzle, box, "puzzle")
    out = np.zeros((limit, board.shape[1]), np.uint8)
    return out[: searcher.solve_one(board[0], out, *_shape(box))]


def rate(
    puzzles: ArrayLike, runs: int = 10, seed: int = 0, box: Box = NINE, threads: int | None = None
) -> NDArray[np.float32]:
    """Difficulty: guesses until the first solution, mean of `runs` randomised searches.  [N]

    The search propagates singles and locked candidates and guesses at random in a cell with two
    candidates. The rating of a puzzle does not depend on its neighbours in the array.
    """
    boards = _boards(puzzles, box, "puzzles")
    ratings = np.zeros(len(boards), np.float32)

    def work(part: slice) -> None:
        miner.rate_all(boards[part], runs, seed, ratings[part], *_shape(box))

    _parallel(work, len(boards), threads)
    return ratings


def canonical(grids: ArrayLike, box: Box = NINE, threads: int | None = None) -> Boards:
    """The smallest image of each full grid under all symmetries of the board.  [N, n·n]"""
    return canonical_puzzles(grids, grids, box, threads)[1]


def canonical_puzzles(
    puzzles: ArrayLike, grids: ArrayLike, box: Box = NINE, threads: int | None = None
) -> tuple[Boards, Boards]:
    """Canonical puzzles and grids: equal pairs if and only if the puzzles are equivalent.

    `grids` are the solutions of `puzzles`. A canonical puzzle is the smallest image under those
    symmetries that make its solution grid smallest.
    """
    boards, full = _boards(puzzles, box, "puzzles"), _boards(grids, box, "grids")
    n = box[0] * box[1]
    if n > canon.LARGEST_SIDE:
        raise InputError(
            f"canonical forms are offered up to {canon.LARGEST_SIDE}×{canon.LARGEST_SIDE}, "
            f"not for {n}×{n}; use fingerprint, an invariant that never separates equivalent grids"
        )
    if not is_grid(full, box).all():
        row = int(np.argmin(is_grid(full, box)))
        raise InputError(f"grids[{row}] is not a full {n}×{n} Sudoku: {_text(full[row])}")
    best, best_puzzles = np.zeros_like(full), np.zeros_like(full)
    orders = canon.column_orders(*box)
    square = (-1, n, n)

    def work(part: slice) -> None:
        views = [a[part].reshape(square) for a in (full, boards, best, best_puzzles)]
        canon.minimise_all(*views, box[0], box[1], orders)

    _parallel(work, len(full), threads)
    return best_puzzles, best


def fingerprint(grids: ArrayLike, box: Box = NINE) -> NDArray[np.uint64]:
    """A number per grid that all its images share: fast, for any size, but not a complete test."""
    boards = _boards(grids, box, "grids")
    n = box[0] * box[1]
    return np.array(
        [canon.fingerprint(g, box[0], box[1]) for g in boards.reshape(-1, n, n)], np.uint64
    )


def random_grids(
    count: int, seed: int, first: int = 0, box: Box = NINE, threads: int | None = None
) -> Boards:
    """Full grids number `first`, `first + 1`, ... of the stream `seed`.  [count, n·n]

    Every grid can occur; they are not exactly uniform.
    """
    return random_puzzles(count, seed, first, box, threads)[1]


def random_puzzles(
    count: int, seed: int, first: int = 0, box: Box = NINE, threads: int | None = None
) -> tuple[Boards, Boards]:
    """Random puzzles with their grids, each a function of (seed, index).  [count, n·n] twice

    Up to 9×9 they are minimal: no clue can be left out. See BUDGET for larger boards.
    """
    n = box[0] * box[1]
    puzzles = np.zeros((count, n * n), np.uint8)
    grids = np.zeros_like(puzzles)

    def work(part: slice) -> None:
        budget = BUDGET.get(n, searcher.NO_BUDGET)
        first_index = first + part.start
        miner.random_all(seed, first_index, puzzles[part], grids[part], budget, *_shape(box))

    _parallel(work, count, threads, chunk=64)
    return puzzles, grids


def hard_puzzles(
    chain: int,
    seed: int,
    least: float,
    count: int = CHAIN,
    runs: int = 8,
    box: Box = NINE,
    tries: int = 1_000_000,
) -> tuple[Boards, Boards, NDArray[np.float32]]:
    """The first `count` puzzles of walk number `chain` of the hard-puzzle search.

    Returns puzzles, grids and ratings (each >= `least`); fewer than `count` if `tries` neighbours
    did not suffice.
    """
    n = box[0] * box[1]
    if n > 9:
        raise InputError(f"the hard-puzzle search handles boards up to 9×9, not {n}×{n}")
    puzzles = np.zeros((count, n * n), np.uint8)
    grids, ratings = np.zeros_like(puzzles), np.zeros(count, np.float32)
    found = miner.mine(
        seed, chain, float(least), runs, tries, puzzles, grids, ratings, *_shape(box)
    )
    return puzzles[:found], grids[:found], ratings[:found]


def is_minimal(puzzles: ArrayLike, box: Box = NINE) -> NDArray[np.bool_]:
    """Does every clue of these uniquely solvable puzzles matter?  [N]"""
    boards = _boards(puzzles, box, "puzzles")
    return np.array([miner.minimal(puzzle, *_shape(box)) for puzzle in boards], bool)


def is_grid(grids: Boards, box: Box = NINE) -> NDArray[np.bool_]:
    """Does every row, column and box hold every digit once?  [N]"""
    n, (box_rows, box_cols) = box[0] * box[1], box
    g = grids.reshape(-1, n, n)
    boxes = g.reshape(-1, box_cols, box_rows, box_rows, box_cols).transpose(0, 1, 3, 2, 4)
    digits = np.arange(1, n + 1)
    units = (g, g.transpose(0, 2, 1), boxes.reshape(-1, n, n))
    correct = np.stack([(np.sort(unit, -1) == digits).all((1, 2)) for unit in units])
    return np.asarray(correct.all(0))


def _shape(box: Box) -> tuple[Any, Any, Any]:
    """The board's shape as the compiled functions want it; see sudoku_bitboard."""
    return (0,) * box[0], (0,) * box[1], bitboard.tables(*box)


def _boards(values: ArrayLike, box: Box, name: str) -> Boards:
    n = box[0] * box[1]
    boards = np.asarray(values)
    if boards.ndim == 1:
        boards = boards[None]
    if boards.ndim != 2 or boards.shape[1] != n * n or boards.dtype.kind not in "ui":
        raise InputError(
            f"{name}: expected integers [N, {n * n}], got {boards.dtype} {list(boards.shape)}"
        )
    if boards.size and (boards.min() < 0 or boards.max() > n):
        raise InputError(f"{name}: expected 0 to {n}, got values {boards.min()} to {boards.max()}")
    return np.ascontiguousarray(boards, np.uint8)


def _text(board: Boards) -> str:
    return " ".join(map(str, board.tolist()))


def _parallel(
    work: Callable[[slice], None], count: int, threads: int | None, chunk: int = 256
) -> None:
    """Run `work` over slices of `count` items; results land in arrays, so order does not matter."""
    parts: Iterable[slice] = [slice(i, min(i + chunk, count)) for i in range(0, count, chunk)]
    workers = threads or os.cpu_count() or 1
    if workers == 1 or count <= chunk:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, part) for part in parts]:
            done.result()
