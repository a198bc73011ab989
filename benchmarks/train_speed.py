"""Speed of training: puzzles per second, share of the card's matrix rate, and where time goes.

python benchmarks/train_speed.py configs/sudoku.toml --data train.csv.gz --batch 1024 2048
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from samm import tasks
from samm.config import Config
from samm.data import convert
from samm.training.log import peak_flops
from samm.training.trainer import Trainer


def build(arguments: argparse.Namespace, batch: int, *more: str) -> Trainer:
    overrides = [f"training.batch_size={batch}", "training.steps=10000", *arguments.set, *more]
    config = Config.read(arguments.config, overrides)
    dataset = convert.load(arguments.data, tasks.from_spec(config.task), limit=20_000)
    return Trainer(config, [dataset[100:]], dataset[:100], device=arguments.device)


def measure(trainer: Trainer, seconds: float) -> float:
    """Seconds per step, after warm-up."""
    cuda = trainer.device.type == "cuda"
    for _ in range(5):
        trainer.train_step()
    if cuda:
        torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(5):
            trainer.train_step()
        if cuda:
            torch.cuda.synchronize()
        count += 5
    return (time.perf_counter() - start) / count


def check_recorded(arguments: argparse.Namespace, batch: int, steps: int) -> None:
    """Recorded steps are the steps that they record: the same losses, but for rounding."""
    losses = []
    for how in ("graph", "step"):
        trainer = build(arguments, batch, f"training.compile={how}")
        losses.append(torch.stack([trainer.train_step() for _ in range(steps)]).sum(1))
        del trainer
    worst = float(((losses[0] - losses[1]) / losses[1]).abs().max())
    print(f"losses of {steps} steps, recorded and not: apart by {worst:.2%} at most", flush=True)
    assert worst < 0.02, losses


def parts(trainer: Trainer, repeats: int = 10) -> dict[str, float]:
    """Milliseconds of the parts of a step, with the device waited for in between."""
    total = dict.fromkeys(("batch", "batch and kernel step", "loss and gradients", "update"), 0.0)

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        if trainer.device.type == "cuda":
            torch.cuda.synchronize()
        total[name] += 1e3 * (time.perf_counter() - start) / repeats
        return result

    for _ in range(repeats):
        timed("batch", lambda: trainer.batches.draw(trainer.step))
        drawn = timed("batch and kernel step", trainer.draw_states)
        timed("loss and gradients", lambda d=drawn: trainer.descend(*d))
        timed("update", trainer.update)
    return total


def profile(trainer: Trainer) -> str:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if trainer.device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as recorded:
        for _ in range(3):
            trainer.train_step()
        if trainer.device.type == "cuda":
            torch.cuda.synchronize()
    order = "self_cuda_time_total" if trainer.device.type == "cuda" else "self_cpu_time_total"
    return recorded.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=70)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--batch", type=int, nargs="+", default=[1024])
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--device")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--check", type=int, help="compare this many recorded steps with others")
    arguments = parser.parse_args()
    if arguments.check:
        check_recorded(arguments, arguments.batch[0], arguments.check)
    for batch in arguments.batch:
        trainer = build(arguments, batch)
        start = time.perf_counter()
        trainer.train_step()
        first = time.perf_counter() - start
        seconds = measure(trainer, arguments.seconds)
        rate = trainer.flops_per_step / seconds
        peak = peak_flops(trainer.device)
        share = f", MFU {rate / peak:.1%}" if peak else ""
        print(
            f"{trainer.device}, batch {batch:,}: {batch / seconds:,.0f} puzzles/s, "
            f"{1e3 * seconds:.1f} ms/step, {rate / 1e12:.1f} TFLOP/s{share} "
            f"(first step {first:.1f} s)",
            flush=True,
        )
        for name, milliseconds in parts(trainer).items():
            print(f"    {name:<22} {milliseconds:6.2f} ms", flush=True)
        if arguments.profile and batch == arguments.batch[0]:
            print(profile(trainer))


if __name__ == "__main__":
    main()
