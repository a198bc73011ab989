"""The command `samm`: every subcommand is a thin function over the API.

Nothing heavy is imported until a command needs it, so that `samm --help` is instant.
"""

import sys
from typing import Annotated

import typer

from samm import __version__
from samm.cli_data import data
from samm.cli_demo import demo
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


app.command(rich_help_panel="Start here")(demo)


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
