"""One network, one file of problems, one protocol: everything that a table needs to know of it."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from samm.data.format import Dataset
from samm.errors import InputError
from samm.evaluation.calibration import Calibration
from samm.evaluation.metrics import Outcome, score, wilson
from samm.model import Network
from samm.process.objective import Samm
from samm.samplers.base import Model, Sampler
from samm.samplers.engine import Frame
from samm.samplers.ensemble import RULES, Chains, Rule, chains_of, rule_named
from samm.samplers.trajectory import Recorder
from samm.tasks import Problem, Task

Report = Callable[[int, int, int], None]
"""Called with (chains ended, problems whose chains have all ended, those of them solved)."""

COUNTS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of chains that an ensemble's table looks at."""
SLICE = 2048
"""Problems that rules look at together: they compare all pairs of chains."""


@dataclass(frozen=True)
class Protocol:
    """How to evaluate."""

    sampler: Sampler
    chains: int = 1
    select: str = "first"
    seed: int = 0
    batch: int = 1024
    """Chains that the network looks at together; it makes no difference to the answers."""
    trajectories: int = 0
    """Keep those of the first chain of so many problems."""
    calibration: Samm | None = None
    """The objective that the heads were trained with: count how they keep to it."""

    @property
    def rule(self) -> Rule:
        return rule_named(self.select)

    @property
    def verifier(self) -> bool:
        """Do the rules of the task have a say in the answers?"""
        return self.rule.verifier or self.sampler.verifier


def evaluate(
    network: Network,
    data: Dataset,
    protocol: Protocol,
    report: Report | None = None,
    autocast: torch.dtype | None = None,
    model: Model | None = None,
) -> dict[str, Any]:
    """Answer all problems and measure; a table of plain values, ready for JSON.

    `model` predicts in the network's place: the same, compiled.

    Ctrl-C ends it with what is known so far, marked `partial`: the problems up to the first one
    that is not finished, so that easy ones are not favoured.
    """
    task, device = network.task, next(network.parameters()).device
    if protocol.rule.verifier and not task.can_verify:
        raise InputError(f"task '{task.name}' cannot verify answers: rule '{protocol.select}'")
    if len(data) == 0:
        raise InputError("no problem to evaluate on")
    problems = task.problem(torch.from_numpy(np.array(data.tokens)).long().to(device))
    answers = torch.from_numpy(np.array(data.answers)).long().to(device)
    watch, running = _Watch(protocol, answers), _Running(task, problems, answers, protocol)
    start, partial = time.perf_counter(), False
    try:
        with torch.autocast(device.type, autocast, enabled=autocast is not None):
            running.run(model or network, watch, report)
    except KeyboardInterrupt:
        partial = True
    seconds = time.perf_counter() - start
    n = running.finished
    if n == 0:
        raise InputError("interrupted before the first problem was finished")
    measured = _Measured(
        network, problems[:n].to("cpu"), answers[:n].cpu(), running.chains[:n].to("cpu"),
        running.right[:n].cpu(), protocol,
    )  # fmt: skip
    return {
        "partial": partial,
        **measured.table(np.asarray(data.ratings)[:n]),
        "seconds": seconds,
        "puzzles_per_second": n / seconds,
        **watch.table(problems, n),
    }


class _Running:
    """The chains of all problems, and which of their answers are right."""

    def __init__(self, task: Task, problems: Problem, answers: Tensor, protocol: Protocol) -> None:
        self.task, self.problems, self.answers, self.protocol = task, problems, answers, protocol
        self.predictions = protocol.chains > 1 or protocol.rule.predictions
        self.chains = Chains.empty(problems, protocol.chains, task.vocabulary, self.predictions)
        self.right = torch.zeros_like(self.chains.stopped)  # [n, N]

    def run(self, model: Model, watch: "_Watch", report: Report | None) -> None:
        protocol, seen = self.protocol, watch if watch.wanted else None
        for part in chains_of(
            protocol.sampler, model, self.problems, protocol.chains, protocol.seed,
            protocol.batch, seen, predictions=self.predictions,
        ):  # fmt: skip
            row, number = self.chains.add(part)
            some, tokens = self.problems[row], part.answer.tokens
            self.right[row, number] = self.task.right(some, tokens, self.answers[row])
            if report:
                ended = self.chains.ended
                solved = int((ended & self.right[:, 0]).sum())
                report(int((self.chains.steps >= 0).sum()), int(ended.sum()), solved)

    @property
    def finished(self) -> int:
        """Problems up to the first one with a chain that has not ended."""
        return int(self.chains.ended.int().cumprod(0).sum())


class _Watch:
    """What is looked at along the way."""

    def __init__(self, protocol: Protocol, answers: Tensor) -> None:
        count = min(protocol.trajectories, len(answers))
        self.answers = answers
        self.recorder = Recorder([i * protocol.chains for i in range(count)])
        self.calibration = (
            Calibration(answers, protocol.chains, protocol.calibration)
            if protocol.calibration is not None
            else None
        )

    @property
    def wanted(self) -> bool:
        return bool(self.recorder.wanted) or self.calibration is not None

    def __call__(self, frame: Frame) -> None:
        if self.recorder.wanted:
            self.recorder(frame)
        if self.calibration is not None:
            self.calibration(frame)

    def table(self, problems: Problem, n: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        if self.calibration is not None:
            table["calibration"] = self.calibration.table()
        if self.recorder.wanted:
            table["trajectories"] = [
                {
                    "problem": problems.tokens[place].tolist(),
                    "answer": self.answers[place].tolist(),
                    "states": path.states.tolist(),
                    "confidence": _rounded(path.confidence),
                    "certainty": _rounded(path.certainty),
                    "progress": _rounded(path.progress),
                }
                for place, number in enumerate(self.recorder.wanted)
                if place < n
                for path in [self.recorder[number]]
            ]
        return table


def _rounded(values: Tensor) -> Any:
    return (values.double() * 1000).round().div(1000).tolist()


@dataclass(frozen=True)
class _Measured:
    """Chains that have ended, and what can be said of them."""

    network: Network
    problems: Problem
    answers: Tensor
    chains: Chains
    right: Tensor
    """[n, N]"""
    protocol: Protocol

    def table(self, ratings: np.ndarray) -> dict[str, Any]:
        protocol, flops = self.protocol, self.network.flops()
        tokens, outcome = self.choose(protocol.rule, protocol.chains)
        total = self.score(outcome)
        return {
            **total,
            "exact": float((tokens == self.answers).all(-1).double().mean()),
            "oracle": float(self.right.any(1).double().mean()),
            "flops_per_puzzle": total["calls_per_puzzle"] * flops,
            "steps_histogram": _histogram(outcome.steps),
            "by_difficulty": self.by_difficulty(outcome, ratings),
            "ensembles": self.ensembles(),
        }

    def score(self, outcome: Outcome) -> dict[str, Any]:
        return asdict(score(outcome, self.protocol.sampler.learned_stop))

    def choose(self, rule: Rule, count: int) -> tuple[Tensor, Outcome]:
        """The answers [n, d] of a rule on the first `count` chains, and what became of them."""
        parts: list[tuple[Tensor, ...]] = []
        for first in range(0, len(self.answers), SLICE):
            some, few = slice(first, first + SLICE), slice(0, count)
            choice = rule.choose(self.problems[some], self.chains[some, few], self.right[some, few])
            answer = choice.answer
            parts.append((answer.tokens, answer.stopped, answer.steps, choice.calls))
        tokens, *costs = (torch.cat(column) for column in zip(*parts, strict=True))
        right = self.network.task.right(self.problems, tokens, self.answers)
        return tokens, Outcome(right, *costs)

    def by_difficulty(self, outcome: Outcome, ratings: np.ndarray) -> list[dict[str, Any]]:
        task = self.network.task
        buckets = torch.from_numpy(task.difficulty(ratings))
        return [
            {"difficulty": label, **self.score(outcome[buckets == number])}
            for number, label in enumerate(task.difficulties)
            if bool((buckets == number).any())
        ]

    def ensembles(self) -> list[dict[str, Any]]:
        """Every rule on the first 1, 2, 3, 5, 10, ... chains: they are those of smaller runs."""
        rows: list[dict[str, Any]] = []
        count = self.protocol.chains
        for few in sorted({count, *(c for c in COUNTS if c < count)}):
            oracle = int(self.right[:, :few].any(1).sum())
            for rule in RULES.values():
                if _fits(rule, few, self.network.task.can_verify):
                    _, outcome = self.choose(rule, few)
                    verifier = rule.verifier or self.protocol.sampler.verifier
                    row = {"chains": few, "select": rule.name, "verifier": verifier}
                    n = len(outcome.right)
                    ceiling = {"oracle": oracle / n, "oracle_ci95": wilson(oracle, n)}
                    rows.append({**row, **self.score(outcome), **ceiling})
        return rows


def _fits(rule: Rule, chains: int, can_verify: bool) -> bool:
    """Is there something to choose, and what the rule needs?"""
    return rule.name == "first" if chains == 1 else can_verify or not rule.verifier


def _histogram(steps: Tensor) -> list[list[int]]:
    """Numbers of steps, and how many problems took them."""
    counts = torch.bincount(steps).tolist()
    return [[value, count] for value, count in enumerate(counts) if count]
