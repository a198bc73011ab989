"""`samm demo`: famous puzzles, and one that nobody has seen before."""

from typing import TYPE_CHECKING, Annotated

import typer

from samm.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from samm.solver import Solver

FAMOUS = {
    "Arto Inkala, 2012, “the world's hardest Sudoku”": (
        "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
    ),
    "AI Escargot": (
        "1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3.."
    ),
    "Golden Nugget": (
        ".......39.....1..5..3.5.8....8.9...6.7...2...1..4.......9.8..5..2....6..4..7....."
    ),
    "Easter Monster": (
        "1.......2.9.4...5...6...7...5.9.3.......7.......85..4.7.....6...3...9.8...2.....1"
    ),
    "Platinum Blonde": (
        ".......12........3..23..4....18....5.6..7.8.......9.....85.....9...4.5..47...6..."
    ),
    "Arto Inkala, 2010": (
        "..53.....8......2..7..1.5..4....53...1..7...6..32...8..6.5....9..4....3......97.."
    ),
}
"""Published puzzles that were the hardest of their day. The network was trained on none of them."""


def demo(
    rating: Annotated[
        float, typer.Option(help="Least difficulty of the puzzle made here, in guesses.")
    ] = 30.0,
    seed: Annotated[int | None, typer.Option(help="The same seed makes the same puzzle.")] = None,
) -> None:
    """Solve the hardest published Sudokus, then one that is made on the spot."""
    from rich.console import Console

    from samm import runtime
    from samm.solver import load

    console = Console(highlight=False)
    chosen = runtime.choose(seed=seed).seed
    solver = load("sudoku")
    console.print(
        f"[bold]A network of {solver.network.parameter_count / 1e6:.2f} million parameters[/bold] "
        f"on {solver.runtime.device}: one chain, no search, no verifier. It drafts, doubts, "
        "corrects, and says when it is done.\n",
        soft_wrap=True,
    )
    for name, puzzle in FAMOUS.items():
        _solve(console, solver, name, puzzle)
    puzzle, found = _made_here(console, chosen, rating)
    title = f"Made just now (seed {chosen}; {found:.0f} guesses of a randomised solver)"
    _solve(console, solver, title, puzzle)


def _solve(console: "Console", solver: "Solver", name: str, puzzle: str) -> None:
    """Puzzle and answer side by side, shaded by confidence, and what the rules say of it."""
    from rich.columns import Columns
    from rich.padding import Padding

    solution = solver.solve(puzzle, verify=False, steps=1000)
    task, problem = solver.task, solution.problem
    right = bool(task.verify(problem[None], solution.tokens[None]))
    console.print(f"[bold]{name}[/bold]")
    console.print(f"[dim]{puzzle}[/dim]", soft_wrap=True)
    boards = [task.render(problem, problem.tokens), solution.render()]
    console.print(Columns([Padding(board, (0, 4, 0, 0)) for board in boards]))
    if right:
        verdict = "[green]solved[/green], checked by the rules"
    elif solution.stopped:
        verdict = "[red]NOT SOLVED[/red]: it stopped on an answer that breaks the rules"
    else:
        verdict = "[red]NOT SOLVED[/red]: the steps ran out"
    console.print(f"{verdict}; {solution.steps} steps, {solution.seconds:.1f} s\n")


def _made_here(console: "Console", seed: int, rating: float) -> tuple[str, float]:
    """A hard puzzle by the engine's search, and its rating."""
    from samm.data import sudoku_engine as engine

    with console.status("compiling the search (once), then looking for a hard puzzle"):
        puzzles, _, ratings = engine.hard_puzzles(0, seed, rating, count=1)
    if not len(puzzles):
        raise InputError(f"found no puzzle rated {rating:g} or more; try a smaller --rating")
    return "".join(".123456789"[digit] for digit in puzzles[0]), float(ratings[0])
