"""The command `samm`: every subcommand is a thin function over the API.

Nothing heavy is imported until a command needs it, so that `samm --help` is instant.
"""

import sys
from typing import Annotated

import typer

from samm import __version__
from samm.cli_data import data
from samm.cli_eval import evaluate, export, report
from samm.cli_solve import solve
from samm.cli_train import train
from samm.errors import InputError

app = typer.Typer(
    help="Self-Aware Markov Models: networks that solve puzzles by drafting, doubting, correcting.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit code 2 for bad input, 130 after Ctrl-C."""
    try:
        app(arguments)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"samm {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(rich_help_panel="Start here")
def demo(
    rating: Annotated[float, typer.Option(help="Least difficulty, in guesses.")] = 30.0,
    seed: Annotated[int | None, typer.Option(help="The same seed makes the same puzzle.")] = None,
) -> None:
    """Make a hard puzzle, show it with its answer, verify that."""
    import time

    from rich.columns import Columns
    from rich.console import Console
    from rich.padding import Padding

    from samm import runtime, tasks
    from samm.data import sudoku_engine as engine

    console = Console(highlight=False)
    chosen = runtime.choose(seed=seed).seed
    task = tasks.get("sudoku")
    start = time.perf_counter()
    with console.status("compiling the engine (once), then searching for a hard puzzle"):
        puzzles, _, ratings = engine.hard_puzzles(0, chosen, rating, count=1)
    if not len(puzzles):
        raise InputError(f"found no puzzle rated {rating:g} or more; try a smaller --rating")
    searched = time.perf_counter() - start
    puzzle = "".join("." if d == 0 else str(d) for d in puzzles[0])
    problem = task.encode(puzzle)
    answers = task.answers(problem)
    assert answers is not None
    found = list(answers)
    verified = bool(task.verify(problem[None], found[0][None]))
    console.print(f"[bold]A hard puzzle[/bold], made here (seed {chosen}):")
    console.print(f"{puzzle}\n", soft_wrap=True)
    boards = [task.render(problem, problem.tokens), task.render(problem, found[0])]
    console.print(Columns([Padding(board, (0, 4, 1, 0)) for board in boards]))
    console.print(f"rating    {ratings[0]:.0f} guesses of a randomised solver")
    console.print(f"clues     {int(problem.clue.sum())}")
    console.print(f"solutions {len(found)}")
    console.print(f"verified  {'yes' if verified and len(found) == 1 else 'no'}")
    console.print(f"searched  {searched:.1f} s", style="dim")


@app.command(rich_help_panel="Start here")
def info() -> None:
    """Versions, device and number format, and why they were chosen."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from rich.console import Console
    from rich.table import Table

    from samm import runtime, tasks, weights

    chosen = runtime.choose()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("samm", __version__)
    table.add_row("python", f"{platform.python_version()} on {platform.system()}")
    for package in ("torch", "numpy", "numba", "safetensors", "pyarrow", "matplotlib"):
        try:
            table.add_row(package, version(package))
        except PackageNotFoundError:
            table.add_row(package, "not installed (optional)")
    for name in ("device", "dtype", "seed"):
        value = str(getattr(chosen, name)).removeprefix("torch.")
        table.add_row(name, f"{value}  [dim]{chosen.reasons[name]}[/dim]")
    table.add_row("tasks", ", ".join(tasks.names()))
    table.add_row("weights", ", ".join(weights.installed()) or "none installed")
    Console(highlight=False).print(table)


app.command(rich_help_panel="Start here")(solve)
app.command(rich_help_panel="Train and evaluate")(train)
app.command("eval", rich_help_panel="Train and evaluate")(evaluate)
app.command(rich_help_panel="Train and evaluate")(report)
app.command(rich_help_panel="Train and evaluate")(export)
app.add_typer(data, name="data", rich_help_panel="Data")
