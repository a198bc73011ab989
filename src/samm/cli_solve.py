"""`samm solve`."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from samm.errors import InputError

if TYPE_CHECKING:
    from samm.solver import Options, Solution, Solver


def solve(
    problems: Annotated[list[str] | None, typer.Argument(help="Problems as text.")] = None,
    file: Annotated[
        str | None, typer.Option(help="A file of problems in any readable format; - for stdin.")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="A released network, or a run or exported folder.")
    ] = "sudoku",
    chains: Annotated[int, typer.Option(help="Chains per problem.", min=1)] = 1,
    select: Annotated[
        str | None, typer.Option(help="How several chains make one answer, as in samm eval.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(help="Let the rules decide what is done; a chain that went wrong restarts."),
    ] = True,
    steps: Annotated[int | None, typer.Option(help="Most steps of a chain.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same answers.")] = 0,
    watch: Annotated[bool, typer.Option("--watch", help="See it think, step by step.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Also ask a classical solver how many answers exist.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Rows of CSV.")] = False,
    parquet: Annotated[Path | None, typer.Option(help="Write this Parquet file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write JSON or CSV into this file.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the output of an interrupted run.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; default: the best.")] = None,
) -> None:
    """Solve problems with a trained network."""
    if bool(problems) == bool(file):
        raise InputError("give either problems or --file")
    if as_csv + as_json + bool(parquet) > 1:
        raise InputError("--json, --csv and --parquet contradict each other: give one of them")
    if watch and (file or len(problems or []) != 1 or chains > 1):
        raise InputError("--watch shows one chain on one problem")
    if (watch or check) and (file or as_json or as_csv):
        raise InputError("--watch and --check go with problems shown on the screen")
    if parquet and (out or not file):
        raise InputError("--parquet goes with --file, and instead of --out")
    if (out or resume) and not file:
        raise InputError("--out and --resume go with --file")
    if resume and not (out or parquet):
        raise InputError("--resume goes on with what --out or --parquet names")
    from samm.solver import Options, load

    solver = load(weights, device)
    options = Options(chains, select, steps, verify, seed)
    if file:
        kind = "csv" if as_csv else "json"
        raise SystemExit(_solve_file(solver, options, file, kind, parquet, out, resume))
    raise SystemExit(_solve_texts(solver, options, problems or [], watch, check, as_json, as_csv))


def _solve_texts(
    solver: "Solver",
    options: "Options",
    texts: list[str],
    watch: bool,
    check: bool,
    as_json: bool,
    as_csv: bool,
) -> int:
    """Exit code 1 if one of them is not solved."""
    from samm.solve_file import Output

    if watch:
        solutions = [_watched(solver, options, texts[0])]
    else:
        solutions = solver.solve(texts, **vars(options))
    if as_json or as_csv:
        output = Output("csv" if as_csv else "json", None, sys.stdout)
        for solution in solutions:
            output.write({**solution.table(), "error": None})
    else:
        for solution in solutions:
            _show(solution, check, board=not watch)
    return 0 if all(solution.solved for solution in solutions) else 1


def _show(solution: "Solution", check: bool, board: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if board:
        console.print(solution.render())
    console.print(solution.output, soft_wrap=True)
    verdicts = {True: "verified by the rules", False: "NOT SOLVED: it breaks the rules"}
    told = verdicts.get(solution.verified) if solution.verified is not None else "not verified"
    if fault := solution.fault:
        told = f"NOT SOLVED: {fault}"
    if not solution.solved and not solution.stopped:
        told = "NOT SOLVED: the steps ran out"
    style = "green" if solution.verified else "red" if not solution.solved else "yellow"
    milliseconds = f", {1000 * solution.seconds:.0f} ms" if solution.seconds is not None else ""
    console.print(f"[{style}]{told}[/], {solution.steps} steps{milliseconds}")
    if check:
        console.print(f"classical check: {_checked(solution)}")


def _checked(solution: "Solution") -> str:
    found = solution.task.oracle(solution.problem[None])
    if found is None:
        return "this task has no classical solver"
    return ("no solution exists", "one solution exists", "several solutions exist")[
        min(int(found[1][0]), 2)
    ]


def _watched(solver: "Solver", options: "Options", text: str) -> "Solution":
    """Solve with the terminal as witness: cells appear, doubt, change, settle."""
    import time

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    solution = solver.solve(text, trace=True, **vars(options))
    path = solution.trajectory
    assert path is not None
    last = len(path.states) - 1
    with Live(refresh_per_second=20) as live:
        for step, (state, sure, tau) in enumerate(
            zip(path.states, path.confidence, path.progress.tolist(), strict=True)
        ):
            filled = round(30 * tau)
            bar = Text("τ " + "█" * filled + "░" * (30 - filled) + f" {tau:.3f}", style="cyan")
            board = solution.task.render(solution.problem, state, sure)
            live.update(Group(Text(f"step {step} of {last}"), board, bar))
            time.sleep(0.25 if last < 60 else 0.05)
    return solution


def _solve_file(
    solver: "Solver",
    options: "Options",
    file: str,
    kind: str,
    parquet: Path | None,
    out: Path | None,
    resume: bool,
) -> int:
    """Exit code 1 if there was a line that could not be read."""
    from samm import progress
    from samm.solve_file import Counts, Output, lines_of, solve_lines, to_parquet

    if parquet is not None:
        if find_spec("pyarrow") is None:
            raise InputError("--parquet needs pyarrow: pip install 'samm[tables]'")
        if parquet.exists():
            raise InputError(f"{parquet} already exists; remove it first")
        kind, out = "json", parquet.with_name(parquet.name + ".part")
    counts = Counts()
    with progress.bar("bytes") as bar:
        line = bar.add_task("solving", total=None)
        lines = lines_of(
            None if file == "-" else Path(file),
            sys.stdin,
            solver.task.separators,
            lambda done, size: bar.update(line, completed=done, total=size),
        )
        output = Output(kind, out, sys.stdout)
        output.open(lines, resume)
        try:
            for table in solve_lines(solver, lines, options, output.done):
                output.write(table)
                counts.add(table)
                if table["error"]:
                    typer.echo(table["error"], err=True)
                if counts.rows % solver.chunk == 0:
                    output.flush()
                    bar.update(line, description=f"{counts}")
        except KeyboardInterrupt:
            bar.stop()
            typer.echo("interrupted; the same command with --resume goes on", err=True)
            raise SystemExit(130) from None
        finally:
            output.close()
    if parquet is not None and out is not None:
        to_parquet(out, parquet)
    typer.echo(str(counts), err=True)
    return 1 if counts.bad else 0
