"""`samm eval`, `samm report` and `samm export`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def evaluate(
    weights: Annotated[str, typer.Option(help="A released network, or a run folder.")],
    data: Annotated[Path, typer.Option(help="Problems with answers, in any readable format.")],
    sampler: Annotated[
        str | None,
        typer.Option(
            help="chain, restart (which looks at the rules), euler, top_k, margin, remdm, mgdm, "
            "gidd, d3pm or left_to_right; "
            "default: the network's own."
        ),
    ] = None,
    chains: Annotated[int, typer.Option(help="Chains per problem.", min=1)] = 1,
    select: Annotated[
        str | None,
        typer.Option(
            help="average, vote, first, residual, confidence, majority or verified (which looks "
            "at the rules); default: average where there are several chains."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Most steps of a chain; of a rival, all of them.", min=1)
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first rows.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same answers.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Of the sampler, e.g. token_temperature=0.8 (repeatable)."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Chains looked at together; default by device.", min=1)
    ] = None,
    trajectories: Annotated[
        int, typer.Option(help="Also keep the way to the answer of the first N problems.", min=0)
    ] = 0,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Also hold both heads against the truth.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; default: the best.")] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile the network: pays on a GPU for long runs.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, for `samm report`.")
    ] = False,
) -> None:
    """Measure a network: solved, stopped, steps and costs, with intervals and by difficulty."""
    from samm import progress, runtime, schema
    from samm import weights as networks
    from samm.data import convert
    from samm.evaluation.measure import Request, measure

    options: dict[str, Any] = {}
    for text in option or []:
        schema.override(options, text, flag="--option", form="name=value")
    request = Request(
        weights, data, sampler, chains, select, steps, limit, seed, options, batch,
        trajectories, calibration, device, compile_,
    )  # fmt: skip
    chosen = runtime.choose(device, seed=seed)
    trained = networks.load(weights, chosen.device)
    problems = convert.load(data, trained.network.task, limit)
    with progress.bar("chains") as bar:
        line = bar.add_task("evaluating", total=len(problems) * chains)

        def report(ended: int, finished: int, solved: int) -> None:
            share = f"{solved / finished:.1%} of {finished:,}" if finished else "evaluating"
            bar.update(line, completed=ended, description=share)

        result = measure(request, trained, chosen, problems, report)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        from samm.evaluation.show import show

        show(result)
    if result["partial"]:
        typer.echo("interrupted: the result is that of the problems finished so far", err=True)
        raise SystemExit(130)


def export(
    run: Annotated[str, typer.Argument(help="A run folder.")],
    out: Annotated[Path, typer.Argument(help="The new folder.")],
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
) -> None:
    """Write the network of a run as a small folder of its own."""
    from samm import weights as networks

    size = networks.export(run, out, dtype)
    typer.echo(f"{out}: {size / 1e6:.1f} MB")


def report(
    results: Annotated[
        list[Path], typer.Argument(help="Files of `samm eval --json`, or folders of them.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")],
    into: Annotated[
        Path | None,
        typer.Option(help="A Markdown file: the tables replace what is between its markers."),
    ] = None,
) -> None:
    """Turn saved results into tables (Markdown, LaTeX) and figures (PNG, SVG, GIF)."""
    from samm.evaluation.report import report as write

    paths = write(results, out, into, say=typer.echo)
    for path in paths:
        typer.echo(str(path))
