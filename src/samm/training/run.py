"""From a configuration to a finished run folder: data, resume, training, curves."""

import math
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
from samm.training.log import Log, curves, inherit, refuse_missing
from samm.training.loop import fit
from samm.training.optimizer import plateau_end
from samm.training.trainer import Trainer

FREE = (
    "steps", "compile", "log_every", "evaluate_every", "checkpoint_every", "keep", "part_megabytes",
    "evaluation_steps",
)  # fmt: skip
"""Keys of [training] that may change when a run goes on."""


def train(
    config: Config,
    run: Path,
    minutes: float | None = None,
    steps: int | None = None,
    resume: bool = False,
    extend: Path | None = None,
    device: str | None = None,
    tensorboard: bool = False,
    wandb: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train as configured into the folder `run`; returns the last evaluation.

    `steps` replaces the configured number of steps; `minutes` measures the speed and fixes the
    number that fits, which the run's configuration then holds, so that it can be repeated. `resume`
    goes on from the newest checkpoint, exactly; a run begun keeps its length.

    `extend` names another run, with a trapezoid schedule, that this one repeats in more steps: it
    begins at the end of that one's plateau, and ends as if it had been trained from nothing.
    `minutes` are then those that come on top.
    """
    if minutes is not None and steps is not None:
        raise InputError("minutes and steps contradict each other: give one of them")
    if minutes is not None and not 0 < minutes < math.inf:
        raise InputError(f"{minutes:g} minutes: expected more than 0")
    refuse_missing(tensorboard=tensorboard, wandb=wandb)
    world, given = distributed.join()
    try:
        saved = _saved(config, run, resume, steps)
        if saved is not None:
            steps = saved.config.training.steps
        if steps is not None:
            config = replace(config, training=replace(config.training, steps=steps))
        base = _plateau(config, extend) if extend is not None and saved is None else None
        if minutes is None and config.training.steps is None:
            raise InputError("how long? give --minutes, --steps, or training.steps")
        say = say if world.first else _silent
        trainer = Trainer(config, *datasets(config, say), world, given or device)
        _begin(trainer, run, saved, base, minutes, say)
        if base is not None and extend is not None and world.first:
            inherit(extend, run, base.step)
        log = Log(run, trainer.speed(), not world.first, tensorboard, wandb)
        try:
            result = fit(trainer, run, log)
        finally:
            log.close()
    finally:
        distributed.leave()
    if world.first:
        curves(run)
    return result


def _begin(
    trainer: Trainer,
    run: Path,
    saved: checkpoint.Checkpoint | None,
    base: checkpoint.Checkpoint | None,
    minutes: float | None,
    say: Callable[[str], None],
) -> None:
    """Bring the trainer to its first step, back to where it was, or to where `base` ends."""
    say(
        f"{trainer.network.parameter_count:,} parameters, "
        f"{trainer.network.flops() / 1e9:.2f} GFLOP per prediction, on {trainer.device} "
        f"in {str(trainer.dtype).removeprefix('torch.')}"
    )
    if saved is not None:
        trainer.restore(saved)
        say(f"resuming at step {saved.step:,}")
        return
    if minutes is not None:
        steps = trainer.steps_for(minutes)
        trainer.set_steps(steps + (base.step if base else 0))
        say(f"{steps:,} steps fit into {minutes:g} minutes")
    if base is not None:
        end = plateau_end(trainer.config.optimizer, trainer.config.training.steps or 1)
        if end < base.step:
            raise InputError(
                f"{trainer.config.training.steps:,} steps: the rate would fall from step {end:,}, "
                f"but the run to extend kept it up to step {base.step:,}; expected more steps"
            )
        trainer.restore(base)
        say(f"going on from step {base.step:,}")
    trainer.save(run)  # so that even a run killed in its first steps goes on exactly


def _silent(text: str) -> None:
    pass


def _saved(
    config: Config, run: Path, resume: bool, steps: int | None
) -> checkpoint.Checkpoint | None:
    """The checkpoint to go on from. A run folder is never overwritten by accident."""
    if not checkpoint.steps(run):
        return None
    if not resume:
        raise InputError(f"{run} already holds a run; give --resume to go on with it")
    saved = checkpoint.load(run)
    _refuse_other(config, saved.config, run)
    if steps not in (None, saved.config.training.steps):
        raise InputError(
            f"{run} was begun with {saved.config.training.steps} steps, which its learning rate "
            f"follows; it cannot become {steps}"
        )
    return saved


def _plateau(config: Config, run: Path) -> checkpoint.Checkpoint:
    """Where the plateau of a run ends that is to be made longer."""
    newest = checkpoint.load(run)
    length = newest.config.training.steps
    if config.optimizer.schedule != "trapezoid":
        raise InputError(
            f'optimizer.schedule = "{config.optimizer.schedule}" follows the length of a run, so '
            f'{run} cannot be extended; expected "trapezoid"'
        )
    _refuse_other(config, newest.config, run)
    end = plateau_end(config.optimizer, length or 1)
    if newest.step < end:
        raise InputError(
            f"{run} has come to step {newest.step:,}, and its plateau ends at {end:,}: resume it"
        )
    return checkpoint.load(run, end)


def _refuse_other(config: Config, there: Config, run: Path) -> None:
    """A run goes on as it was begun, but for its length and what does not touch the weights."""
    other, wanted = there.table(), config.table()
    for table in (other, wanted):
        for key in FREE:
            del table["training"][key]
    for section, value in wanted.items():
        if other[section] != value:
            raise InputError(
                f"{run} was begun with another [{section}]: {other[section]}, not {value}"
            )


def datasets(config: Config, say: Callable[[str], None]) -> tuple[list[Dataset], Dataset]:
    """Training sets and the held-out rows; no training row is equivalent to a held-out one.

    (That of `held_out_files` is in the hands of who made them.)
    """
    task = tasks.from_spec(config.task)
    if config.data.files:
        sets = [convert.load(path, task) for path in config.data.files]
    else:
        sets = [_generate(task, config.data.generated, config.training.seed)]
    if files := config.data.held_out_files:
        share = math.ceil(config.data.held_out / len(files))
        return sets, _join(task, [convert.load(path, task, limit=share) for path in files])
    total = sum(map(len, sets))
    wanted = min(config.data.held_out, total // 10)
    if not wanted:
        raise InputError(f"{total} rows to train on and to hold some out of: expected 10 or more")
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
    return kept, _join(task, held)


def _join(task: Task, parts: list[Dataset], rows: int | None = None) -> Dataset:
    """One data set of several, or of its first `rows`."""
    tokens, answers, ratings = (
        np.concatenate([getattr(part, name) for part in parts])[:rows]
        for name in ("tokens", "answers", "ratings")
    )
    return Dataset(task, tokens, answers, ratings, {})


def _generate(task: Task, rows: int, seed: int) -> Dataset:
    from samm.data.generate import chunks

    stream = chunks(task, seed)
    parts: list[Dataset] = []
    while sum(map(len, parts)) < rows:
        parts.append(next(stream))
    stream.close()
    return _join(task, parts, rows)
