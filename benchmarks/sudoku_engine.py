"""Speed of the data engine on one core, side by side with a public SAT solver.

    python benchmarks/sudoku_engine.py --puzzles FOLDER

FOLDER holds `forum11_test.csv.gz` and `clue17_train.csv.gz` (see the README for what they are);
without it, puzzles of the project's own search stand in.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

from samm import tasks
from samm.data import convert
from samm.data import sudoku_engine as engine

DEFAULT = Path(__file__).parents[2] / "shared" / "data" / "sudoku"


def rate(work: Callable[[], int], seconds: float = 3.0) -> float:
    """Units per second, after one unmeasured call that compiles."""
    work()
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        done += work()
    return done / spent


def sat_rate(puzzles: np.ndarray, solver_name: str = "cadical153") -> float:
    """Puzzles per second of a SAT solver on the usual encoding, rules loaded once.

    One solver keeps the rules and what it learned; the clues are assumptions. Faster per puzzle
    than a fresh solver for each.
    """
    from pysat.solvers import Solver

    def variable(cell: int, digit: int) -> int:
        return cell * 9 + digit

    groups = tasks.get("sudoku").coordinates.groups.numpy()
    units = [np.flatnonzero(groups[:, g] == i).tolist() for g in range(3) for i in range(9)]
    clauses = []
    for cell in range(81):
        clauses.append([variable(cell, d) for d in range(1, 10)])
        clauses += [
            [-variable(cell, a), -variable(cell, b)] for a, b in combinations(range(1, 10), 2)
        ]
    for unit in units:
        for d in range(1, 10):
            clauses.append([variable(cell, d) for cell in unit])
            clauses += [[-variable(a, d), -variable(b, d)] for a, b in combinations(unit, 2)]
    start = time.perf_counter()
    with Solver(name=solver_name, bootstrap_with=clauses) as solver:
        for puzzle in puzzles:
            clues = [variable(int(c), int(puzzle[c])) for c in np.flatnonzero(puzzle)]
            assert solver.solve(assumptions=clues)
    return len(puzzles) / (time.perf_counter() - start)


def load(folder: Path, name: str) -> np.ndarray | None:
    path = folder / f"{name}.csv.gz"
    if not path.exists():
        return None
    return (convert.load(path, tasks.get("sudoku")).tokens + 1) % 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--puzzles", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    arguments = parser.parse_args()
    rows: list[tuple[str, float, float | None, str]] = []

    def row(name: str, value: float, bar: float | None, limit: str) -> None:
        rows.append((name, value, bar, limit))
        goal = "" if bar is None else f"(bar {bar:,.0f})"
        print(f"{name:<44} {value:>12,.0f} /s {goal:<14} {limit}", flush=True)

    print(f"{platform.processor() or platform.machine()}, one thread\n")
    made = engine.hard_puzzles(0, 0, 20)[0]
    for name, bar in (("forum11_test", 5_000), ("clue17_train", 50_000)):
        puzzles = load(arguments.puzzles, name)
        if puzzles is None:
            name, puzzles, bar = f"{name} absent: own hard puzzles", made, None

        def solve(puzzles: np.ndarray = puzzles) -> int:
            engine.solve(puzzles, threads=1)
            return len(puzzles)

        def count(puzzles: np.ndarray = puzzles) -> int:
            engine.count_solutions(puzzles, threads=1)
            return len(puzzles)

        guesses = float(engine.rate(puzzles[:1000], 3).mean())
        row(f"solve, {name}", rate(solve), bar, f"{guesses:.1f} guesses of about 1 µs each")
        row(f"solve and prove unique, {name}", rate(count), None, "about twice the guesses")
        for solver in ("cadical153", "glucose4"):
            row(f"python-sat {solver}, {name}", sat_rate(puzzles[:300], solver), None, "")

    def canonical() -> int:
        engine.canonical(grids, threads=1)
        return len(grids)

    def minimal() -> int:
        engine.random_puzzles(500, 0, threads=1)
        return 500

    def ratings() -> int:
        engine.rate(made, 10, threads=1)
        return len(made)

    grids = engine.random_grids(500, 0)
    row(
        "canonical forms",
        rate(canonical),
        3_000,
        "7,776 orders of the columns, relabelled and compared",
    )
    row("random minimal puzzles", rate(minimal), 300, "81 tests of a clue each")
    row("ratings (10 runs), puzzles rated ≥ 20", rate(ratings), None, "guesses")
    found, seconds = 0, []
    for chain in range(6):
        start = time.perf_counter()
        found += len(engine.hard_puzzles(chain, 0, 20)[0])
        seconds.append(time.perf_counter() - start)
    limit = f"1 neighbour in 100 is hard; {min(seconds):.1f}–{max(seconds):.1f} s a walk of 128"
    row("hard puzzles (≥ 20 guesses)", found / sum(seconds), 20, limit)
    if arguments.json:
        content = {
            name: {"per_second": round(value), "bar": bar, "limit": limit}
            for name, value, bar, limit in rows
        }
        arguments.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
