"""`samm data`: check, import, generate, inspect and split puzzles."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from samm.errors import InputError

if TYPE_CHECKING:
    from samm.data.convert import Report

data = typer.Typer(help="Make, read, convert, check and split puzzles.", no_args_is_help=True)

TaskOption = Annotated[
    str, typer.Option("--task", help="Task, e.g. sudoku or sudoku:box_rows=2,box_cols=2.")
]
FileArgument = Annotated[
    Path, typer.Argument(help="CSV, list, .npy folder, Parquet or samm data; plain or gzip.")
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same result.", min=0)]


@data.command()
def check(
    puzzles: Annotated[list[str] | None, typer.Argument(help="Puzzles as text.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file of puzzles instead.")] = None,
    task: TaskOption = "sudoku",
) -> None:
    """Tell whether puzzles have no, one or several solutions.

    Exit code 1 unless all have one, or any where a task is content with several.
    """
    import torch

    from samm import tasks
    from samm.data.readers import Reader
    from samm.tasks import Problem

    chosen = tasks.parse(task)
    if bool(puzzles) == bool(file):
        raise InputError("give either puzzles or --file")
    batches: Any = [list(enumerate(puzzles or [], 1))]
    if file:
        batches = (
            zip(rows.lines, rows.puzzles, strict=True) for rows in Reader(file, chosen.separators)
        )
    good = True
    for batch in batches:
        numbers, problems = [], []
        for number, text in batch:
            try:
                problems.append(chosen.encode(text))
            except InputError as error:
                raise InputError(f"{file or 'puzzle'} {number}: {error}") from None
            numbers.append(number)
        solved = chosen.oracle(Problem.stack(problems))
        if solved is None:
            raise InputError(f"task '{chosen.name}' has no classical solver")
        for number, problem, count in zip(numbers, problems, solved[1].tolist(), strict=True):
            verdict = ("no solution", "one solution", "several solutions")[min(count, 2)]
            typer.echo(f"{number}: {verdict}  {chosen.decode(problem.tokens)}")
        good &= bool(torch.all(solved[1] == 1 if chosen.unique else solved[1] > 0))
    raise typer.Exit(0 if good else 1)


@data.command("import")
def import_(
    sources: Annotated[list[Path], typer.Argument(help="Files or .npy folders to read.")],
    out: Annotated[Path, typer.Option(help="The data file to write.")],
    task: TaskOption = "sudoku",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and list bad rows instead of stopping.")
    ] = False,
) -> None:
    """Convert puzzles of any readable format into one compact, checked data file."""
    from samm import tasks
    from samm.data.convert import BadRows, read_rows
    from samm.data.format import Writer

    chosen = tasks.parse(task)
    bad = BadRows() if skip_bad else None
    about = {"imported": [path.name for path in sources][:20]}
    with Writer(out, chosen, about) as writer:
        for source in sources:
            with _reading(source) as report:
                for batch in read_rows(source, chosen, bad, report):
                    writer.append(batch.tokens, batch.answers, batch.ratings)
    if bad and bad.count:
        typer.echo(f"skipped {bad.count:,} bad rows:", err=True)
        for line in bad.examples:
            typer.echo(f"  {line}", err=True)
        if bad.count > len(bad.examples):
            typer.echo(f"  ... and {bad.count - len(bad.examples):,} more", err=True)
    typer.echo(f"{out}: {writer.count:,} rows")


@data.command()
def generate(
    task: Annotated[str, typer.Argument(help="e.g. sudoku or sudoku:box_rows=4,box_cols=4")],
    count: Annotated[int, typer.Option(help="How many puzzles.", min=1)] = 10,
    min_rating: Annotated[float, typer.Option(help="Least difficulty, in guesses.", min=0)] = 0,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None, typer.Option(help="Data file to write; without it, CSV goes to stdout.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run of the same command.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Default: all cores.", min=1)] = None,
) -> None:
    """Make puzzles: random minimal ones, or by --min-rating the hard-puzzle search."""
    from samm import progress, tasks
    from samm.data import generate as generator

    chosen = tasks.parse(task)
    if out is None:
        _print_csv(generator.chunks(chosen, seed, min_rating, threads=threads), count)
        return
    with progress.bar("puzzles") as bar:
        line = bar.add_task("generating", total=count)
        try:
            rows = generator.generate(
                chosen,
                out,
                count,
                seed,
                min_rating,
                resume,
                threads,
                report=lambda done: bar.update(line, completed=done),
            )
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(
                f"\ninterrupted; the same command with --resume goes on with {out}", err=True
            )
            raise SystemExit(130) from None
    typer.echo(f"{out}: {rows:,} rows")


@data.command()
def inspect(
    file: FileArgument,
    task: TaskOption = "sudoku",
    figure: Annotated[
        Path | None, typer.Option(help="Draw the histograms into this PNG, SVG or PDF.")
    ] = None,
) -> None:
    """Count rows, clues and ratings, as bars in the terminal and as a figure."""
    from rich.bar import Bar
    from rich.console import Console
    from rich.table import Table

    from samm.data import inspect as inspector

    summary = inspector.summarise(_open(file, task))
    console = Console(highlight=False)
    typer.echo(f"{file}: {summary.rows:,} rows, {summary.distinct:,} distinct")
    if summary.ratings:
        median, high, most = summary.ratings
        console.print(f"rating: median {median:g}, 90th percentile {high:g}, highest {most:g}")
    histograms: dict[str, dict[Any, int]] = {
        "clues": summary.clues,
        "rating": summary.difficulties,
    }
    for name, histogram in histograms.items():
        table = Table(name, "rows", "", box=None, pad_edge=False)
        table.columns[1].justify = "right"
        for label, rows in histogram.items():
            bar = Bar(max(histogram.values()) or 1, 0, rows, width=40)
            table.add_row(str(label), f"{rows:,}", bar)
        console.print(table)
    if figure:
        inspector.figure(summary, file.name, figure)
        typer.echo(f"wrote {figure}")


@data.command()
def split(
    file: FileArgument,
    out: Annotated[Path, typer.Option(help="Folder for train.samm, valid.samm and test.samm.")],
    test: Annotated[float, typer.Option(help="Share of the test part.")] = 0.1,
    valid: Annotated[float, typer.Option(help="Share of the validation part.")] = 0.0,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out what is equivalent to a row of this file (repeatable)."),
    ] = None,
    seed: SeedOption = 0,
    task: TaskOption = "sudoku",
) -> None:
    """Split without leaks: equivalent problems (for Sudoku: solution grids) stay together."""
    from samm import progress
    from samm.data import split as splitter

    shares = {"train": 1 - test - valid, "valid": valid, "test": test}
    shares = {name: share for name, share in shares.items() if share}
    dataset = _open(file, task)
    others = [_open(path, task) for path in exclude or []]
    with progress.bar("rows") as bar:
        line = bar.add_task("splitting", total=len(dataset))
        counts = splitter.split(
            dataset, out, shares, seed, others, lambda done: bar.update(line, completed=done)
        )
    for name, rows in counts.items():
        if name != "excluded":
            typer.echo(f"{out / name}.samm: {rows:,} rows")
    if exclude:
        typer.echo(f"excluded: {counts['excluded']:,} rows")


def _open(file: Path, task: str) -> Any:
    """A readable file as a data set; our own format knows its task."""
    from samm import tasks
    from samm.data import convert, format

    if file.is_file() and format.is_dataset(file):
        return format.open_dataset(file)
    with _reading(file) as report:
        return convert.load(file, tasks.parse(task), report=report)


@contextmanager
def _reading(source: Path) -> "Iterator[Report]":
    from samm import progress

    with progress.bar("bytes") as bar:
        line = bar.add_task(source.name, total=None)
        yield lambda done, size, rows: bar.update(line, completed=done, total=size)


def _print_csv(chunks: Any, count: int) -> None:
    import csv

    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["puzzle", "solution", "rating"])
    left = count
    for chunk in chunks:
        for row in range(min(len(chunk), left)):
            texts = [_text(chunk.task, field[row]) for field in (chunk.tokens, chunk.answers)]
            rating = chunk.ratings[row]
            out.writerow([*texts, "" if rating != rating else f"{rating:g}"])
        left -= len(chunk)
        if left <= 0:
            break
    chunks.close()


def _text(task: Any, tokens: Any) -> str:
    import torch

    return str(task.decode(torch.from_numpy(tokens.astype("int64"))))
