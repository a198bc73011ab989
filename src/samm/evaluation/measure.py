"""From a request, as the command line makes it, to a result that says how to make it again."""

import dataclasses
import functools
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from samm import __version__, runtime
from samm.data import convert
from samm.data.format import Dataset
from samm.errors import InputError
from samm.evaluation.evaluate import Protocol, Report, evaluate
from samm.process.objective import Samm
from samm.runtime import Runtime
from samm.samplers import registry
from samm.samplers.base import Compiled
from samm.training.trainer import build_objective
from samm.weights import Trained


@dataclass(frozen=True)
class Request:
    """The options of `samm eval`; None leaves the choice to the network, or to the device."""

    weights: str
    data: Path
    sampler: str | None = None
    chains: int = 1
    select: str | None = None
    steps: int | None = None
    limit: int | None = None
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    """Of the sampler."""
    batch: int | None = None
    trajectories: int = 0
    calibration: bool = False
    device: str | None = None
    compile: bool = False
    """Compile the network for full batches: some 30 seconds at first, then several times faster
    on a GPU."""

    @property
    def command(self) -> str:
        """The command line that asks for the same."""
        words = ["samm", "eval"]
        for flag, value in (
            ("--weights", self.weights), ("--data", self.data), ("--sampler", self.sampler),
            ("--steps", self.steps), ("--limit", self.limit), ("--batch", self.batch),
            ("--device", self.device),
        ):  # fmt: skip
            words += [] if value is None else [flag, str(value)]
        words += ["--chains", str(self.chains)] if self.chains > 1 else []
        words += ["--select", self.select] if self.select else []
        for name, value in self.options.items():
            text = str(value).lower() if isinstance(value, bool) else value
            words += ["--option", f"{name}={text}"]
        words += ["--trajectories", str(self.trajectories)] * bool(self.trajectories)
        words += ["--calibration"] * self.calibration + ["--compile"] * self.compile
        return shlex.join([*words, "--seed", str(self.seed), "--json"])


def measure(
    request: Request,
    trained: Trained,
    chosen: Runtime | None = None,
    data: Dataset | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Evaluate a network as requested; `data` may have been read before."""
    chosen = chosen or runtime.choose(request.device, seed=request.seed)
    options = {**request.options, **({} if request.steps is None else {"steps": request.steps})}
    protocol = Protocol(
        registry.build(trained.config, request.sampler, options),
        request.chains,
        request.select or ("average" if request.chains > 1 else "first"),
        request.seed,
        request.batch or trained.network.good_batch(chosen.device),
        request.trajectories,
        _objective(trained) if request.calibration else None,
    )
    if data is None:
        data = convert.load(request.data, trained.network.task, request.limit)
    dtype = None if chosen.dtype == torch.float32 else chosen.dtype
    model = _compiled(trained.network, protocol.batch) if request.compile else None
    measured = evaluate(trained.network, data, protocol, report, dtype, model)
    return {**_about(request, trained, chosen, protocol), **measured}


@functools.lru_cache(maxsize=1)  # several requests in a row are often for one network
def _compiled(network: torch.nn.Module, batch: int) -> Compiled:
    return Compiled(network, batch)


def _objective(trained: Trained) -> Samm:
    objective = build_objective(trained.config)
    if not isinstance(objective, Samm):
        raise InputError(
            "--calibration: a network trained with objective.kind = "
            f"'{trained.config.objective.kind}' has no heads to hold against the truth"
        )
    return objective


def _about(
    request: Request, trained: Trained, chosen: Runtime, protocol: Protocol
) -> dict[str, Any]:
    """What was measured, and how to do it again."""
    sampler, config = protocol.sampler, trained.config
    return {
        "weights": trained.name,
        "data": request.data.name,
        "limit": request.limit,
        "sampler": sampler.name,
        "options": {k: v for k, v in dataclasses.asdict(sampler).items() if k != "task"},
        "chains": protocol.chains,
        "select": protocol.select,
        "steps_cap": sampler.cap,
        "seed": protocol.seed,
        "verifier": protocol.verifier,
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
            "device": _device_name(chosen.device),
            "dtype": str(chosen.dtype).removeprefix("torch."),
            "torch": torch.__version__,
            "samm": __version__,
        },
        "command": request.command,
    }


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {torch.get_num_threads()} threads"
