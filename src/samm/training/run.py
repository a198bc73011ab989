"""From a configuration to a finished run folder: data, resume, training, curves."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from samm import tasks
from samm.config import Config
from samm.data import convert
from samm.data.format import Dataset
from samm.errors import InputError
from samm.tasks import Task
from samm.training import checkpoint, distributed
from samm.training.log import Log, curves, peak_flops
from samm.training.trainer import Trainer, fit


def train(
    config: Config,
    run: Path,
    minutes: float | None = None,
    resume: bool = False,
    device: str | None = None,
    tensorboard: bool = False,
    wandb: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train as configured into the folder `run`; returns the last evaluation.

    `minutes` measures the speed and fixes the number of steps, which the run's configuration then
    holds. `resume` goes on from the newest checkpoint, exactly.
    """
    world, given = distributed.join()
    device = given or device
    saved = _saved(config, run, resume, minutes)
    if saved is not None:
        config = saved.config
    if minutes is None and config.training.steps is None:
        raise InputError("how long? give --minutes, --steps, or training.steps")
    if not world.first:
        say = _silent
    training, held_out = datasets(config, say)
    trainer = Trainer(config, training, held_out, world, device)
    say(
        f"{trainer.network.parameter_count:,} parameters, "
        f"{trainer.network.flops() / 1e9:.2f} GFLOP per prediction, on {trainer.device} "
        f"in {str(trainer.dtype).removeprefix('torch.')}"
    )
    if saved is not None:
        trainer.restore(saved)
        say(f"resuming at step {saved.step:,}")
    elif minutes is not None:
        steps = trainer.steps_for(minutes)
        trainer.set_steps(steps)
        say(f"{steps:,} steps fit into {minutes:g} minutes")
    if world.first:
        run.mkdir(parents=True, exist_ok=True)
        text = json.dumps(trainer.config.table(), indent=1)
        (run / "config.json").write_text(text + "\n", encoding="utf-8")
    steps = trainer.config.training.steps or 0
    log = Log(
        run, trainer.step, steps, config.training.batch_size, trainer.flops_per_step,
        peak_flops(trainer.device), not world.first, tensorboard, wandb,
    )  # fmt: skip
    try:
        result = fit(trainer, run, log)
    finally:
        log.close()
        distributed.leave()
    if world.first:
        curves(run)
    return result


def _silent(text: str) -> None:
    pass


def _saved(
    config: Config, run: Path, resume: bool, minutes: float | None
) -> checkpoint.Checkpoint | None:
    """The checkpoint to go on from. A run folder is never overwritten by accident."""
    if not checkpoint.steps(run):
        return None
    if not resume:
        raise InputError(f"{run} already holds a run; give --resume to go on with it")
    saved = checkpoint.load(run)
    wanted = replace(config, training=replace(config.training, steps=None))
    there = replace(saved.config, training=replace(saved.config.training, steps=None))
    for section, value in wanted.table().items():
        if there.table()[section] != value:
            raise InputError(
                f"{run} was begun with another [{section}]: {there.table()[section]}, not {value}"
            )
    return saved


def datasets(config: Config, say: Callable[[str], None]) -> tuple[list[Dataset], Dataset]:
    """Training sets and the held-out rows; no training row is equivalent to a held-out one."""
    task = tasks.from_spec(config.task)
    if config.data.files:
        sets = [convert.load(path, task) for path in config.data.files]
    else:
        sets = [_generate(task, config.data.generated, config.training.seed)]
    wanted = min(config.data.held_out, sum(map(len, sets)) // 10)
    weights = np.array(config.data.weights or [len(s) for s in sets], float)
    counts = np.ceil(wanted * weights / weights.sum()).astype(int)
    random = np.random.default_rng(config.training.seed)
    keys = [np.array(task.split_keys(s.tokens, s.answers), object) for s in sets]
    forbidden: set[bytes] = set()
    held = []
    for dataset, own, count in zip(sets, keys, counts, strict=True):
        order = random.permutation(len(dataset))
        rows_of: dict[bytes, list[int]] = {}
        for row in order:
            rows_of.setdefault(own[row], []).append(row)
        chosen: list[int] = []
        for key, rows in rows_of.items():  # in random order: whole classes of equivalent problems
            if len(chosen) >= count:
                break
            forbidden.add(key)
            chosen += rows
        held.append(dataset[np.sort(np.array(chosen[:count], int))])
    kept = [
        dataset[np.array([key not in forbidden for key in own], bool)]
        for dataset, own in zip(sets, keys, strict=True)
    ]
    say(
        f"{sum(map(len, kept)):,} training rows, {sum(map(len, held)):,} held out; "
        "nothing equivalent in both"
    )
    joined = [
        np.concatenate([getattr(h, n) for h in held]) for n in ("tokens", "answers", "ratings")
    ]
    return kept, Dataset(task, joined[0], joined[1], joined[2], {})


def _generate(task: Task, rows: int, seed: int) -> Dataset:
    from samm.data.generate import chunks

    stream = chunks(task, seed)
    parts: list[Dataset] = []
    while sum(map(len, parts)) < rows:
        parts.append(next(stream))
    stream.close()
    tokens = np.concatenate([p.tokens for p in parts])[:rows]
    answers = np.concatenate([p.answers for p in parts])[:rows]
    return Dataset(task, tokens, answers, np.full(rows, np.nan, np.float32), {})
