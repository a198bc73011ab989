"""Solve problems with a trained network.

    import samm
    solver = samm.load("runs/sudoku")
    print(solver.solve("8..........36......7..9.2...5...7.......457....."))

The network alone writes the answers. With `verify` the rules of the task decide when a chain is
done, and one that went wrong starts again; without it the network's own stop does.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch
from rich.text import Text
from torch import Tensor

from samm import runtime, weights
from samm.errors import InputError
from samm.runtime import Runtime
from samm.samplers import registry
from samm.samplers.base import Sampler
from samm.samplers.engine import Watch
from samm.samplers.ensemble import Choice, ensemble
from samm.samplers.trajectory import Recorder, Trajectory
from samm.tasks import Problem, Task
from samm.weights import Trained

LARGE = 3e8
"""FLOPs per prediction from which bfloat16 pays on a CPU that has it."""


@dataclass(frozen=True)
class Options:
    """How to solve."""

    chains: int = 1
    """Chains per problem."""
    select: str | None = None
    """How several chains make one answer; default: the first that is right, or stops."""
    steps: int | None = None
    """Most steps of a chain; default: 1,000 with the verifier, 256 without."""
    verify: bool = True
    """Let the rules of the task decide what is done, where it has any."""
    seed: int = 0
    """The same seed gives the same answers."""


@dataclass(frozen=True)
class Solution:
    """What became of one problem."""

    input: str
    output: str
    """As the task writes it; what was not found is blank."""
    verified: bool | None
    """Does it obey the rules? None where nobody asked."""
    stopped: bool
    """Did the chain come to its end, by the rules or by the network's own decision?"""
    steps: int
    confidence: tuple[float, ...]
    """Per position, 1 at clues."""
    seconds: float | None = field(compare=False)
    """For how long it was worked on, where it was alone."""
    tokens: Tensor = field(repr=False, compare=False)
    problem: Problem = field(repr=False, compare=False)
    task: Task = field(repr=False, compare=False)
    trajectory: Trajectory | None = field(default=None, repr=False, compare=False)

    @property
    def solved(self) -> bool:
        """By the rules where they were asked, otherwise by the network's own word."""
        return self.stopped if self.verified is None else self.verified

    @property
    def fault(self) -> str | None:
        """What breaks the rules, in words, where the rules were asked and can tell."""
        return self.task.fault(self.problem, self.tokens) if self.verified is False else None

    def table(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        confidence = [round(c, 4) for c in self.confidence]
        return {
            "input": self.input, "output": self.output, "verified": self.verified,
            "stopped": self.stopped, "steps": self.steps, "confidence": confidence,
        }  # fmt: skip

    def render(self) -> Text:
        """For a terminal, shaded by confidence."""
        return self.task.render(self.problem, self.tokens, torch.tensor(self.confidence))

    def __str__(self) -> str:
        return self.output


class Solver:
    """A trained network on a device."""

    def __init__(self, trained: Trained, chosen: Runtime) -> None:
        self.trained, self.network, self.runtime = trained, trained.network, chosen
        on_gpu = chosen.device.type == "cuda"
        self.batch = self.network.good_batch(chosen.device)
        """Chains that the network looks at together."""
        self.chunk = 32_768 if on_gpu else 512
        """Problems of a stream that are worked on together."""

    @property
    def task(self) -> Task:
        return self.network.task

    @overload
    def solve(self, problems: str, *, trace: bool = False, **options: Any) -> Solution: ...
    @overload
    def solve(
        self, problems: Iterable[str], *, trace: bool = False, **options: Any
    ) -> list[Solution]: ...
    def solve(
        self, problems: str | Iterable[str], *, trace: bool = False, **options: Any
    ) -> Solution | list[Solution]:
        """Solve a problem, or a list of them in order; `options` are the fields of `Options`.

        `trace` keeps every state on the way, of one chain.
        """
        chosen = Options(**options)
        texts = [problems] if isinstance(problems, str) else list(problems)
        found = self.solutions(self._read(texts), texts, chosen, trace) if texts else []
        return found[0] if isinstance(problems, str) else found

    def stream(self, problems: Iterable[str], **options: Any) -> Iterator[Solution]:
        """Solve any number of problems, in order, with little memory."""
        chosen, rest, first = Options(**options), iter(problems), 0
        while texts := list(islice(rest, self.chunk)):
            numbers = range(first, first + len(texts))
            yield from self.solutions(self._read(texts, first), texts, chosen, numbers=numbers)
            first += len(texts)

    def solutions(
        self,
        problems: Problem,
        texts: Sequence[str],
        options: Options,
        trace: bool = False,
        numbers: Sequence[int] | None = None,
    ) -> list[Solution]:
        """Solve encoded problems [n, d]; `numbers` are their places in a longer list."""
        if trace and options.chains > 1:
            raise InputError(f"trace follows one chain, not {options.chains}")
        recorder = Recorder(range(len(texts))) if trace else None
        start = time.perf_counter()
        answer = self.choose(problems, options, recorder, numbers).answer.to("cpu")
        seconds = time.perf_counter() - start if len(texts) == 1 else None
        verified = self._verified(problems, answer.tokens, options)
        return [
            Solution(
                text,
                self.task.decode(answer.tokens[row]),
                verified[row],
                bool(answer.stopped[row]),
                int(answer.steps[row]),
                tuple(answer.confidence[row].tolist()),
                seconds,
                answer.tokens[row],
                problems[row],
                self.task,
                recorder[row] if recorder else None,
            )
            for row, text in enumerate(texts)
        ]

    def choose(
        self,
        problems: Problem,
        options: Options,
        watch: Watch | None = None,
        numbers: Sequence[int] | None = None,
    ) -> Choice:
        """Answers to encoded problems, without the texts around them."""
        rule = options.select or ("verified" if self._asks_the_rules(options) else "first")
        chosen, sampler = self.runtime, self.sampler(options)
        places = None if numbers is None else torch.tensor(numbers, device=chosen.device)
        generator = torch.Generator().manual_seed(options.seed)
        mixed = chosen.dtype != torch.float32
        with torch.autocast(chosen.device.type, chosen.dtype) if mixed else nullcontext():
            return ensemble(
                self.network, problems.to(chosen.device), generator, sampler, self.task,
                options.chains, rule, self.batch, watch, places,
            )  # fmt: skip

    def sampler(self, options: Options) -> Sampler:
        """The chain that these options ask for; rivals have samplers of their own."""
        if options.chains < 1:
            raise InputError(f"{options.chains} chains: expected at least 1")
        name = registry.suitable(self.trained.config)[0]
        if name == "chain" and self._asks_the_rules(options):
            name = "restart"
        steps = {} if options.steps is None else {"steps": options.steps}
        return registry.build(self.trained.config, name, steps)

    def _asks_the_rules(self, options: Options) -> bool:
        return options.verify and self.task.can_verify

    def _verified(self, problems: Problem, tokens: Tensor, options: Options) -> list[bool | None]:
        if not self._asks_the_rules(options):
            return [None] * len(tokens)
        right: list[bool | None] = self.task.verify(problems, tokens).tolist()
        return right

    def _read(self, texts: Sequence[str], first: int = 0) -> Problem:
        problems = []
        for number, text in enumerate(texts):
            try:
                problems.append(self.task.encode(text))
            except InputError as error:
                place = f"problem {first + number + 1}: " if first or len(texts) > 1 else ""
                raise InputError(f"{place}{error}") from None
        return Problem.stack(problems)


def load(
    name: str | Path = "sudoku", device: str | None = None, dtype: str | None = None
) -> Solver:
    """A released network by its name, or that of a run or an exported folder, ready to solve."""
    chosen = runtime.choose(device, dtype, seed=0)
    trained = weights.load(name, chosen.device)
    asked = dtype is not None or "SAMM_DTYPE" in os.environ
    on_cpu = chosen.device.type == "cpu"
    if on_cpu and not asked and trained.network.flops() > LARGE and runtime.multiplies_bfloat16():
        chosen = replace(chosen, dtype=torch.bfloat16)
    return Solver(trained, chosen)
