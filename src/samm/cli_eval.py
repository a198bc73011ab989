"""`samm eval`, `samm report` and `samm export`."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from samm import __version__

if TYPE_CHECKING:
    from samm.evaluation.evaluate import Protocol
    from samm.runtime import Runtime
    from samm.weights import Trained


def evaluate(
    weights: Annotated[str, typer.Option(help="A released network, or a run folder.")],
    data: Annotated[Path, typer.Option(help="Problems with answers, in any readable format.")],
    sampler: Annotated[
        str | None,
        typer.Option(
            help="chain, euler, top_k, margin, remdm, mgdm, gidd or d3pm; "
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
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, for `samm report`.")
    ] = False,
) -> None:
    """Measure a network: solved, stopped, steps and costs, with intervals and by difficulty."""
    from samm import runtime
    from samm import weights as networks
    from samm.data import convert
    from samm.evaluation.evaluate import Protocol
    from samm.samplers import registry

    chosen = runtime.choose(device, seed=seed)
    trained = networks.load(weights, chosen.device)
    options = _options(option or [], steps)
    protocol = Protocol(
        registry.build(trained.config, sampler, options),
        chains,
        select or ("average" if chains > 1 else "first"),
        seed,
        batch or (4096 if chosen.device.type == "cuda" else 256),
        trajectories,
        _objective(trained) if calibration else None,
    )
    problems = convert.load(data, trained.network.task, limit)
    about = _about(trained, chosen, protocol, data, limit)
    measured = _measure(trained, problems, protocol, chosen)
    if as_json:
        typer.echo(json.dumps({**about, **measured}))
    else:
        from samm.evaluation.show import show

        show({**about, **measured})
    if measured["partial"]:
        typer.echo("interrupted: the result is that of the problems finished so far", err=True)
        raise SystemExit(130)


def _options(texts: list[str], steps: int | None) -> dict[str, Any]:
    from samm import schema

    table: dict[str, Any] = {} if steps is None else {"steps": steps}
    for text in texts:
        schema.override(table, text, flag="--option", form="name=value")
    return table


def _objective(trained: "Trained") -> Any:
    from samm.errors import InputError
    from samm.process.objective import Samm
    from samm.training.trainer import build_objective

    objective = build_objective(trained.config)
    if not isinstance(objective, Samm):
        raise InputError(
            f"--calibration: a network trained with objective.kind = "
            f"'{trained.config.objective.kind}' has no heads to hold against the truth"
        )
    return objective


def _about(
    trained: "Trained", chosen: "Runtime", protocol: "Protocol", data: Path, limit: int | None
) -> dict[str, Any]:
    """What was measured, and how to do it again."""
    import dataclasses

    import torch

    sampler = protocol.sampler
    config = trained.config
    return {
        "weights": trained.name,
        "data": data.name,
        "limit": limit,
        "sampler": sampler.name,
        "options": dataclasses.asdict(sampler),
        "chains": protocol.chains,
        "select": protocol.select,
        "steps_cap": sampler.cap,
        "seed": protocol.seed,
        "verifier": protocol.rule.verifier,
        "task": trained.network.task.spec(),
        "network": {
            "objective": config.objective.kind,
            "parameters": trained.network.parameter_count,
            "flops_per_call": trained.network.flops(),
            "training_steps": trained.step,
            "training_batch": config.training.batch_size,
            "training_seed": config.training.seed,
            "training_data": [Path(file).name for file in config.data.files] or ["generated"],
        },
        "machine": {
            "device": _device_name(chosen),
            "dtype": str(chosen.dtype).removeprefix("torch."),
            "torch": torch.__version__,
            "samm": __version__,
        },
        "command": "samm " + shlex.join(sys.argv[1:]),
    }


def _device_name(chosen: "Runtime") -> str:
    import torch

    if chosen.device.type == "cuda":
        return torch.cuda.get_device_name(chosen.device)
    return chosen.device.type


def _measure(
    trained: "Trained", problems: Any, protocol: "Protocol", chosen: "Runtime"
) -> dict[str, Any]:
    import torch

    from samm import progress
    from samm.evaluation.evaluate import evaluate as measure

    with progress.bar("chains") as bar:
        line = bar.add_task("evaluating", total=len(problems) * protocol.chains)

        def report(chains: int, finished: int, solved: int) -> None:
            share = f"{solved / finished:.1%} of {finished:,}" if finished else "evaluating"
            bar.update(line, completed=chains, description=share)

        dtype = None if chosen.dtype == torch.float32 else chosen.dtype
        return measure(trained.network, problems, protocol, report, dtype)


def export(
    run: Annotated[str, typer.Argument(help="A run folder.")],
    out: Annotated[Path, typer.Argument(help="The new folder.")],
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
) -> None:
    """Write the network of a run as a small folder of its own."""
    from samm import weights as networks

    size = networks.export(run, out, dtype)
    typer.echo(f"{out}: {size / 1e6:.1f} MB")
