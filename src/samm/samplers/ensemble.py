"""Several chains per problem, and the rules that make one answer of theirs.

The paper averages the categorical probabilities; the others need no probabilities. Chain k of
problem i has its own randomness, a function of (seed, i, k): the first three of ten chains are the
three that a run of three would have.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from samm.errors import InputError
from samm.samplers.base import Model, Sampler
from samm.samplers.engine import BATCH, Finished, Watch, run
from samm.samplers.streams import keys, seed_from
from samm.tasks import Answer, Batch, Problem, Task


@dataclass(frozen=True)
class Chains(Batch):
    """What N chains for each of n problems ended with."""

    tokens: Tensor
    """[n, N, d]"""
    stopped: Tensor
    """[n, N]"""
    steps: Tensor
    """[n, N]; -1 where the chain has not ended yet."""
    confidence: Tensor
    """[n, N, d]"""
    residual: Tensor
    """[n, N]"""
    probabilities: Tensor
    """[n, N, d, K] predictions of the last states; [n, N, 0, K] where nobody asked for them."""

    @classmethod
    def empty(
        cls, problems: Problem, count: int, vocabulary: int, predictions: bool = False
    ) -> "Chains":
        """A place for `count` chains each."""
        n, d = problems.tokens.shape
        device = problems.tokens.device
        wide = d if predictions else 0
        return cls(
            problems.tokens[:, None].repeat(1, count, 1),
            torch.zeros(n, count, dtype=torch.bool, device=device),
            torch.full((n, count), -1, device=device),
            torch.zeros(n, count, d, device=device),
            torch.ones(n, count, device=device),
            torch.zeros(n, count, wide, vocabulary, dtype=torch.float16, device=device),
        )

    def add(self, finished: Finished) -> tuple[Tensor, Tensor]:
        """Enter chains that have ended; returns their problems and numbers."""
        problem = finished.index // self.count
        place = (problem, finished.index % self.count)
        answer = finished.answer
        for mine, new in (
            (self.tokens, answer.tokens),
            (self.stopped, answer.stopped),
            (self.steps, answer.steps),
            (self.confidence, answer.confidence),
            (self.residual, finished.residual),
        ):
            mine[place] = new
        if self.probabilities.numel():
            self.probabilities[place] = finished.probabilities.half()
        return place

    @property
    def count(self) -> int:
        """N"""
        return self.steps.shape[1]

    @property
    def mask(self) -> int:
        """The mask token, K."""
        return self.probabilities.shape[-1]

    @property
    def ended(self) -> Tensor:
        """Problems all of whose chains have ended.  [n]"""
        return (self.steps >= 0).all(1)


@dataclass(frozen=True)
class Choice:
    """One answer per problem, and what it took."""

    answer: Answer
    """Its steps are parallel ones: all chains take them side by side until the answer is known."""
    calls: Tensor
    """[n] network calls of all chains together."""


@dataclass(frozen=True)
class Rule:
    """How to make one answer of several."""

    name: str
    choose: Callable[[Problem, Chains, Tensor], Choice]
    """Of problems, their chains, and which of those the task verifies [n, N]."""
    early: bool = False
    """The first chain to end well decides: the others need not go on."""
    verifier: bool = False
    """The rules of the task decide, not the network."""
    predictions: bool = False
    """Needs the predictions of the last states, or how they changed."""


def _picked(chains: Chains, which: Tensor, early: bool) -> Choice:
    """The answers of chains `which` [n]."""
    rows = torch.arange(len(which), device=which.device)
    steps = chains.steps[rows, which]
    # Side by side: where the first decides, the others are cut off; otherwise all are waited for.
    taken = chains.steps.minimum(steps[:, None]) if early else chains.steps
    answer = Answer(
        chains.tokens[rows, which],
        chains.stopped[rows, which],
        taken.amax(1),
        chains.confidence[rows, which],
    )
    return Choice(answer, (taken + 1).sum(1))


def _made(problem: Problem, chains: Chains, votes: Tensor) -> Choice:
    """At every free position the token with the most weight in `votes` [n, d, K]."""
    total = votes.sum(-1)
    most, tokens = votes.max(-1)
    tokens = torch.where(total > 0, tokens, votes.shape[-1])  # nobody voted: it stays masked
    sure = most / total.clamp(min=1e-12)
    answer = Answer(
        torch.where(problem.clue, problem.tokens, tokens),
        chains.stopped.all(1),
        chains.steps.amax(1),
        torch.where(problem.clue, 1.0, sure),
    )
    return Choice(answer, (chains.steps + 1).sum(1))


def _best(*scores: Tensor) -> Tensor:
    """The chain with the highest score; later scores break ties, and then the lower number.  [n]"""
    ahead = torch.ones_like(scores[0], dtype=torch.bool)
    for score in scores:
        values = score.float().masked_fill(~ahead, -torch.inf)
        ahead &= values == values.amax(1, keepdim=True)
    return ahead.int().argmax(1)


def _sureness(problem: Problem, chains: Chains) -> Tensor:
    """Mean confidence over the free positions; masks count as 0.  [n, N]"""
    counted = (chains.tokens != chains.mask) & problem.free[:, None]
    return (chains.confidence * counted).sum(-1) / problem.free.sum(-1).clamp(min=1)[:, None]


def average(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """The paper's: arg max of the categorical probabilities, averaged over the chains."""
    return _made(problem, chains, chains.probabilities.float().mean(1))


def vote(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """arg max of the token frequencies at every position (masks do not vote)."""
    votes = torch.zeros(*problem.tokens.shape, chains.mask + 1, device=chains.tokens.device)
    for tokens in chains.tokens.unbind(1):
        votes.scatter_add_(-1, tokens[..., None], torch.ones_like(votes[..., :1]))
    return _made(problem, chains, votes[..., : chains.mask])


def first(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """The first chain that stops by itself; without one, the most confident."""
    speed = torch.where(chains.stopped, -chains.steps, -torch.inf)
    return _picked(chains, _best(speed, _sureness(problem, chains)), early=True)


def residual(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """The chain whose prediction changed least in its last step."""
    best = _best(-chains.residual, _sureness(problem, chains))
    return _picked(chains, best, early=False)


def confidence(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """The chain that is surest of its answer."""
    return _picked(chains, _best(_sureness(problem, chains)), early=False)


def majority(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """The whole answer that most chains agree on, among the complete ones."""
    tokens = chains.tokens
    same = (tokens[:, :, None] == tokens[:, None]).all(-1)  # [n, N, N]
    complete = (tokens != chains.mask).all(-1)
    agreeing = same.sum(-1) * complete
    speed = torch.where(chains.stopped, -chains.steps, -torch.inf)
    best = _best(agreeing, speed, _sureness(problem, chains))
    return _picked(chains, best, early=False)


def verified(problem: Problem, chains: Chains, right: Tensor) -> Choice:
    """The first chain whose answer the task itself verifies; without one, as `first`."""
    speed = torch.where(right, -chains.steps, -torch.inf)
    stopped = torch.where(chains.stopped, -chains.steps, -torch.inf)
    best = _best(speed, stopped, _sureness(problem, chains))
    return _picked(chains, best, early=True)


RULES = {
    rule.name: rule
    for rule in (
        Rule("average", average, predictions=True),
        Rule("vote", vote),
        Rule("first", first, early=True),
        Rule("residual", residual, predictions=True),
        Rule("confidence", confidence),
        Rule("majority", majority),
        Rule("verified", verified, early=True, verifier=True),
    )
}


def rule_named(name: str) -> Rule:
    if name not in RULES:
        raise InputError(f"rule '{name}' is unknown; known: {', '.join(RULES)}")
    return RULES[name]


def chains_of(
    sampler: Sampler,
    model: Model,
    problems: Problem,
    count: int,
    seed: int,
    batch: int = BATCH,
    watch: Watch | None = None,
    cap: Tensor | None = None,
    numbers: Tensor | None = None,
    predictions: bool = False,
) -> Iterator[Finished]:
    """Run `count` chains for each problem; chain k of problem i is example i · count + k.

    `numbers` [n] tells which problems these are, where they are a part of a longer list.
    """
    if count < 1:
        raise InputError(f"{count} chains: expected at least 1")
    many = problems.map(lambda field: field.repeat_interleave(count, 0))
    number = torch.arange(len(many.tokens), device=many.tokens.device)
    mine = number // count if numbers is None else numbers.repeat_interleave(count)
    key = keys(seed, mine, number % count)
    yield from run(sampler, model, many, key, batch, watch, cap, predictions)


def ensemble(
    model: Model,
    problems: Problem,
    generator: torch.Generator,
    sampler: Sampler,
    task: Task,
    chains: int = 1,
    select: str = "first",
    batch: int = BATCH,
    watch: Watch | None = None,
    numbers: Tensor | None = None,
) -> Choice:
    """One answer for each of the problems [n, d], of several chains, by the rule `select`."""
    rule = rule_named(select)
    found = Chains.empty(problems, chains, task.vocabulary, rule.predictions)
    right = torch.zeros_like(found.stopped)
    cap = torch.full_like(found.steps, sampler.cap)
    seed = seed_from(generator)
    for part in chains_of(
        sampler,
        model,
        problems,
        chains,
        seed,
        batch,
        watch,
        cap.view(-1),
        numbers,
        rule.predictions,
    ):
        row, chain = found.add(part)
        well = part.answer.stopped
        if rule.verifier:
            well = task.verify(problems[row], part.answer.tokens)
            right[row, chain] = well
        if rule.early:
            # No chain that takes longer can still be the first.
            limit = torch.where(well, part.answer.steps, sampler.cap)
            siblings = (row[:, None].expand(-1, chains), limit[:, None].expand(-1, chains))
            cap.scatter_reduce_(0, *siblings, "amin")
    return rule.choose(problems, found, right)
