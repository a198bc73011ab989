"""Runs any sampler on any number of problems.

Every example counts its own steps and leaves when it is done; its place is taken by the next one
of the queue. So a batch of mixed difficulty costs what its examples cost.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.prediction import Prediction
from samm.samplers.base import Model, Sampler, View
from samm.samplers.streams import Chances, keys, seed_from
from samm.tasks import Answer, Problem

BATCH = 1024


@dataclass(frozen=True)
class Frame:
    """What the network saw in one call, and what it said."""

    index: Tensor
    """[b] which of the problems."""
    view: View
    prediction: Prediction


Watch = Callable[[Frame], None]


@dataclass(frozen=True)
class Finished:
    """Examples that have left, in no particular order."""

    index: Tensor
    """[b] which of the problems."""
    answer: Answer
    probabilities: Tensor
    """[b, d, K] the prediction of the last state; [b, 0, K] where nobody asked for it."""
    residual: Tensor
    """[b] total variation between the last two predictions, mean over free positions; 1 where
    nobody asked."""


@dataclass(frozen=True)
class _Working:
    """The examples at work."""

    index: Tensor
    view: View
    before: Tensor
    """[b, d, K] the prediction of the state before this one; nan at the start."""

    def __getitem__(self, rows: Tensor) -> "_Working":
        return _Working(self.index[rows], self.view[rows], self.before[rows])

    def join(self, other: "_Working") -> "_Working":
        index = torch.cat([self.index, other.index])
        view = View.join([self.view, other.view])
        return _Working(index, view, torch.cat([self.before, other.before]))


@torch.no_grad()
def run(
    sampler: Sampler,
    model: Model,
    problems: Problem,
    key: Tensor,
    batch: int = BATCH,
    watch: Watch | None = None,
    cap: Tensor | None = None,
    predictions: bool = False,
) -> Iterator[Finished]:
    """Solve problems [n, d], each with the randomness of its key [n]; yields them as they finish.

    The network is called once more than an example takes steps: on its last state too. `cap` [n]
    holds the most steps of each example; who reads the results may lower it on the way.
    `predictions` keeps those of the last states, and how much they changed.
    """
    if batch < 1:
        raise InputError(f"batch {batch}: expected at least 1")
    count, length = problems.tokens.shape
    cap = torch.full((count,), sampler.cap, device=key.device) if cap is None else cap
    following = min(batch, count)  # the next of the queue
    work = _start(sampler, problems, key, torch.arange(following, device=key.device))
    while len(work.index):
        view = work.view
        prediction = model(view.state, view.clue, sampler.time(view.step))
        if watch is not None:
            watch(Frame(work.index, view, prediction))
        chances = Chances(key[work.index], view.step, length)
        done = sampler.done(prediction, view)
        leaving = done | (view.step >= cap[work.index])
        state = sampler.step(prediction, view, chances)
        now = prediction.probabilities if predictions else prediction.logits[:, :0]
        moved = _Working(work.index, View(state, view.clue, view.step + 1), now)
        if bool(leaving.any()):
            rows = leaving.nonzero()[:, 0]
            yield _finished(sampler, work, prediction, now, chances, done, rows)
            cut = ~leaving & (view.step >= cap[work.index])  # the reader has lowered their cap
            if bool(cut.any()):
                rows = cut.nonzero()[:, 0]
                yield _finished(sampler, work, prediction, now, chances, done, rows)
            moved = moved[(~leaving & ~cut).nonzero()[:, 0]]
            if room := min(batch - len(moved.index), count - following):
                new = torch.arange(following, following + room, device=key.device)
                moved = moved.join(_start(sampler, problems, key, new, now))
                following += room
        work = moved


def _start(
    sampler: Sampler, problems: Problem, key: Tensor, index: Tensor, like: Tensor | None = None
) -> _Working:
    """New examples of the queue. Nothing was predicted for them before: nan."""
    tokens, clue, zero = problems.tokens[index], problems.clue[index], torch.zeros_like(index)
    # step -1: the start has its own random numbers
    state = sampler.start(tokens, clue, Chances(key[index], zero - 1, tokens.shape[1]))
    empty = torch.empty(0, device=key.device) if like is None else like
    before = empty.new_full((len(index), *empty.shape[1:]), torch.nan)
    return _Working(index, View(state, clue, zero), before)


def _finished(
    sampler: Sampler,
    work: _Working,
    prediction: Prediction,
    now: Tensor,
    chances: Chances,
    done: Tensor,
    rows: Tensor,
) -> Finished:
    view = work.view
    tokens = sampler.finish(prediction, view, chances)
    sure = torch.where(view.clue, 1.0, sampler.confidence(prediction, tokens))
    answer = Answer(tokens, done, view.step, sure)[rows]
    left = work[rows]
    residual = _residual(now[rows], left.before, left.view.clue)
    return Finished(left.index, answer, now[rows], residual)


def _residual(now: Tensor, before: Tensor, clue: Tensor) -> Tensor:
    """Total variation between two predictions; the largest, 1, where there is but one.  [b]"""
    if before.shape != now.shape or not now.numel():  # the first step of all, or nobody asked
        return torch.ones(len(clue), device=clue.device)
    free = (~clue).sum(-1).clamp(min=1)
    change = 0.5 * (now - before).abs().sum(-1).masked_fill(clue, 0).sum(-1) / free
    return change.nan_to_num(1.0)


def sample(
    model: Model,
    problems: Problem,
    generator: torch.Generator,
    sampler: Sampler,
    batch: int = BATCH,
    watch: Watch | None = None,
) -> Answer:
    """One answer for each of the problems [n, d].

    An answer depends on the generator's state and the problem's number, not on the batch size.
    """
    number = torch.arange(len(problems.tokens), device=problems.tokens.device)
    key = keys(seed_from(generator), number, torch.zeros_like(number))
    parts = list(run(sampler, model, problems, key, batch, watch))
    if not parts:
        empty = problems.tokens[:, 0]
        return Answer(problems.tokens, empty.bool(), empty, problems.tokens.float())
    order = torch.cat([part.index for part in parts]).argsort()
    return Answer.join([part.answer for part in parts])[order]
