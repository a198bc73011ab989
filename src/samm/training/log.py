"""What a run tells: JSON lines always, a live line on stderr, TensorBoard and W&B if asked for."""

import json
import shutil
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from samm.errors import InputError

# bfloat16 rates by the vendors' datasheets, without sparsity
PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "4090": 165e12}


def peak_flops(device: torch.device) -> float | None:
    """The device's matrix rate, where it is known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((rate for key, rate in PEAK_FLOPS.items() if key in name), None)


@dataclass(frozen=True)
class Speed:
    """What a log needs to know of a run to speak of its speed."""

    start: int
    """The step at which this process begins."""
    steps: int
    """The length of the run."""
    puzzles: int
    """Per step."""
    flops: float
    """Per step."""
    peak: float | None
    """The matrix rate of all devices together, where it is known."""


class Log:
    """The log of one run; silent in all processes but the first."""

    def __init__(
        self,
        run: Path,
        speed: Speed,
        quiet: bool = False,
        tensorboard: bool = False,
        wandb: str | None = None,
    ) -> None:
        self.quiet, self.speed = quiet, speed
        self.path = run / "metrics.jsonl"
        self.writers: list[Any] = []
        if quiet:
            return
        _forget_after(self.path, speed.start)
        self.file = self.path.open("a", encoding="utf-8")
        if tensorboard:
            self.writers.append(_TensorBoard(run, speed.start))
        if wandb:
            self.writers.append(_Wandb(run, wandb))
        self.progress = Progress(
            TextColumn("{task.completed:,}/{task.total:,}"),
            BarColumn(20),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not Console(stderr=True).is_terminal,
        )
        self.line = self.progress.add_task("", total=speed.steps, completed=speed.start)
        self.shown: dict[str, str] = {}
        self.progress.start()

    def losses(self, step: int, terms: dict[str, float], seconds_per_step: float) -> None:
        """Mean loss terms since the last call."""
        if self.quiet:
            return
        rate = self.speed.puzzles / seconds_per_step
        values = {"loss": sum(terms.values()), **terms, "puzzles_per_second": rate}
        shown = [f"{name} {value:.4f}" for name, value in terms.items()]
        shown.append(f"{rate:,.0f} puzzles/s")
        if self.speed.peak:
            values["mfu"] = self.speed.flops / seconds_per_step / self.speed.peak
            shown.append(f"MFU {values['mfu']:.0%}")
        if self.progress.disable:  # a bar would say how long it still takes
            left = timedelta(seconds=round((self.speed.steps - step) * seconds_per_step))
            shown.append(f"{left} left")
        self.shown["losses"] = "  ".join(shown)
        self._write(step, values)

    def evaluation(self, step: int, values: dict[str, float]) -> None:
        """Accuracy on the held-out puzzles."""
        if self.quiet:
            return
        self.shown["evaluation"] = f"solved {values['accuracy']:.1%}"
        self._write(step, {f"held_out_{key}": value for key, value in values.items()})

    def _write(self, step: int, values: dict[str, float]) -> None:
        row = {"step": step, "time": round(time.time(), 3), **values}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        for writer in self.writers:
            writer.add(step, values)
        description = "  ".join(self.shown.values())
        self.progress.update(self.line, completed=step, description=description)
        if self.progress.disable:
            sys.stderr.write(f"step {step:,}/{self.speed.steps:,}  {description}\n")

    def close(self) -> None:
        if not self.quiet:
            self.progress.stop()
            self.file.close()
            for writer in self.writers:
                writer.close()


def inherit(other: Path, run: Path, step: int) -> None:
    """The log of a run that goes on from another begins with that one's, up to the step."""
    if (other / "metrics.jsonl").exists():
        shutil.copyfile(other / "metrics.jsonl", run / "metrics.jsonl")
        _forget_after(run / "metrics.jsonl", step)


def _forget_after(path: Path, step: int) -> None:
    """Drop lines of steps that a resumed run will take again."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        shorter = path.with_suffix(".part")
        shorter.write_text("".join(kept), encoding="utf-8")
        shorter.replace(path)


def refuse_missing(**wanted: object) -> None:
    """Say so before a run begins if a logger that is wanted is not installed."""
    for package, want in wanted.items():
        if want and find_spec(package) is None:
            raise InputError(f"--{package} needs {package}: pip install 'samm[logging]'")


class _TensorBoard:
    def __init__(self, run: Path, start: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(run / "tensorboard"), purge_step=start + 1)

    def add(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class _Wandb:
    def __init__(self, run: Path, project: str) -> None:
        import wandb

        self.run: Any = wandb.init(project=project, name=run.name, dir=str(run))

    def add(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


def curves(run: Path) -> Path | None:
    """Draw loss and accuracy over the steps into RUN/curves.png; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    sheet = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = sheet.subplots(1, 2)
    losses = [row for row in rows if "loss" in row]
    names = [
        n for n in ("loss", "ce", "commit", "stop", "elbo", "bound") if losses and n in losses[0]
    ]
    for name in names:
        left.plot([r["step"] for r in losses], [r[name] for r in losses], label=name, lw=1.2)
    left.set(xlabel="step", ylabel="loss", yscale="log", xlim=(0, None))
    left.legend(frameon=False, ncols=2)
    tests = [row for row in rows if "held_out_accuracy" in row]
    right.plot(
        [r["step"] for r in tests], [100 * r["held_out_accuracy"] for r in tests], "o-", ms=3
    )
    right.set(xlabel="step", ylabel="held-out puzzles solved, %", xlim=(0, None), ylim=(0, 101))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path = run / "curves.png"
    sheet.savefig(path, dpi=150)
    return path
