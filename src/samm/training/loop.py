"""From the first step to the last: what happens between the steps, and how a run is interrupted."""

import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from samm.errors import InputError
from samm.training.log import Log
from samm.training.trainer import Trainer


class Interrupts:
    """Ctrl-C and SIGTERM, noted instead of obeyed at once; a second one is obeyed."""

    def __init__(self) -> None:
        self.noted = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._note)
        except ValueError:  # not in the main thread: somebody else handles signals
            pass
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True


class Meter:
    """Means of the loss terms, and seconds per step, since the last reading."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.restart()

    def restart(self) -> None:
        self.sum: Tensor | None = None
        self.count, self.start = 0, time.perf_counter()

    def add(self, terms: Tensor) -> None:
        self.sum = terms if self.sum is None else self.sum + terms
        self.count += 1

    def read(self) -> tuple[dict[str, float], float]:
        """The only place in the loop that waits for the device."""
        assert self.sum is not None
        values = (self.trainer.world.add(self.sum) / self.count).tolist()
        seconds = (time.perf_counter() - self.start) / self.count
        self.restart()
        return dict(zip(self.trainer.term_names, values, strict=True)), seconds


def fit(trainer: Trainer, run: Path, log: Log) -> dict[str, Any]:
    """Train to the end, with logs, evaluations and checkpoints; returns the last evaluation.

    Ctrl-C and SIGTERM end the run with a checkpoint: after the current step or, where several
    processes have to agree on the step, at the next line of the log.
    """
    options, world = trainer.config.training, trainer.world
    assert options.steps is not None
    last: dict[str, Any] = trainer.evaluate() if trainer.step == options.steps else {}
    meter = Meter(trainer)
    with Interrupts() as interrupts:
        while trainer.step < options.steps:
            meter.add(trainer.train_step())
            step, final = trainer.step, trainer.step == options.steps
            saving = final or step % options.checkpoint_every == 0
            saving |= step == trainer.extendable_from
            reporting = saving or step % options.log_every == 0
            ending = False
            if reporting or world.size == 1:
                ending = world.any(interrupts.noted, trainer.device)
            if reporting or ending:
                terms, seconds = meter.read()
                log.losses(step, terms, seconds)
                _refuse_nonsense(terms, step)
            if final or step % options.evaluate_every == 0:
                if world.first:
                    last = trainer.evaluate()
                    log.evaluation(step, last)
                world.wait()
            if saving or ending:
                trainer.save(run)
            if ending and not final:
                raise KeyboardInterrupt
            if reporting:
                meter.restart()
    return last


def _refuse_nonsense(terms: dict[str, float], step: int) -> None:
    """Before a checkpoint could be overwritten with it."""
    if not all(torch.tensor(list(terms.values())).isfinite()):
        raise InputError(
            f"the loss is no longer a number at step {step}: {terms}; "
            "a smaller optimizer.rate or muon_rate may help"
        )
