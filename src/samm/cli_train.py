"""`samm train`."""

import json
from pathlib import Path
from typing import Annotated

import typer


def train(
    config: Annotated[Path, typer.Argument(help="A TOML file, e.g. configs/sudoku.toml.")],
    out: Annotated[Path, typer.Option(help="The run folder: checkpoints, metrics, curves.")],
    data: Annotated[
        list[Path] | None, typer.Option(help="Training file (repeatable); sets data.files.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Measure the speed, then fix the number of steps.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps.", min=1)] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint, exactly.")
    ] = False,
    extend: Annotated[
        Path | None,
        typer.Option(help="Begin where this run's rate begins to fall (trapezoid); more steps."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any key, e.g. training.batch_size=8 (repeatable)."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; default: the best.")] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log there.")] = False,
    wandb: Annotated[str | None, typer.Option(help="Also log to this project.")] = None,
) -> None:
    """Train a network on the states that it produces itself."""
    from samm.config import Config
    from samm.training.run import train as run_training

    overrides = list(set_ or [])
    if data:
        overrides.append(
            "data.files=" + json.dumps([str(path) for path in data], ensure_ascii=False)
        )
    chosen = Config.read(config, overrides)
    try:
        result = run_training(
            chosen, out, minutes, steps, resume, extend, device, tensorboard, wandb,
            say=lambda text: typer.echo(text, err=True),
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"interrupted; the same command with --resume goes on with {out}", err=True)
        raise SystemExit(130) from None
    if result:
        typer.echo(f"{out}: {result['accuracy']:.1%} of the held-out puzzles solved")
