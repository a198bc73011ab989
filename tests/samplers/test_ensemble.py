"""Ensembles: every rule on chains made by hand, and on chains that were really run."""

import pytest
import torch
from dummies import Knowing, small_problems

from samm import tasks
from samm.errors import InputError
from samm.samplers import Chain, Euler, ensemble
from samm.samplers.ensemble import RULES, Chains, Choice, chains_of, rule_named
from samm.tasks import Problem

task = tasks.get("sudoku", box_rows=2, box_cols=2)
K = 3
NONE = K


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def one_problem() -> Problem:
    """A clue and three free positions, three tokens."""
    tokens = torch.tensor([[2, K, K, K]])
    clue = tokens != K
    return Problem(tokens, clue, torch.zeros_like(clue))


def chains(
    answers: list[list[int]],
    steps: list[int],
    stopped: list[bool] | None = None,
    sure: list[float] | None = None,
    residual: list[float] | None = None,
    probabilities: torch.Tensor | None = None,
) -> Chains:
    n = len(answers)
    tokens = torch.tensor([[[2, *answer] for answer in answers]])
    confidence = torch.ones(1, n, 4) * torch.tensor(sure or [0.5] * n)[None, :, None]
    return Chains(
        tokens,
        torch.tensor([stopped or [True] * n]),
        torch.tensor([steps]),
        confidence,
        torch.tensor([residual or [1.0] * n]),
        torch.zeros(1, n, 0, K) if probabilities is None else probabilities,
    )


def choose(rule: str, some: Chains, right: list[bool] | None = None) -> Choice:
    verified = torch.tensor([right or [False] * some.count])
    return RULES[rule].choose(one_problem(), some, verified)


def told(choice: Choice) -> tuple[list[int], bool, int, int]:
    answer = choice.answer
    return (
        answer.tokens[0, 1:].tolist(),
        bool(answer.stopped[0]),
        int(answer.steps[0]),
        int(choice.calls[0]),
    )


def test_first_takes_the_fastest_that_stopped_and_cuts_the_others_off() -> None:
    some = chains([[0, 0, 0], [1, 1, 1], [2, 2, 2]], [9, 5, 3], [True, True, False])
    assert told(choose("first", some)) == ([1, 1, 1], True, 5, 6 + 6 + 4)
    tied = chains([[0, 0, 0], [1, 1, 1]], [5, 5], sure=[0.3, 0.6])
    assert told(choose("first", tied))[0] == [1, 1, 1], "the surer one"
    stalled = chains([[0, 0, 0], [1, 1, 1]], [9, 9], [False, False], [0.7, 0.6])
    assert told(choose("first", stalled)) == ([0, 0, 0], False, 9, 20)


def test_verified_takes_the_fastest_right_one() -> None:
    some = chains([[0, 0, 0], [1, 1, 1], [2, 2, 2]], [2, 7, 4])
    assert told(choose("verified", some, [False, True, False])) == ([1, 1, 1], True, 7, 3 + 8 + 5)
    assert told(choose("verified", some, [False, True, True])) == ([2, 2, 2], True, 4, 3 + 5 + 5)
    assert told(choose("verified", some))[0] == [0, 0, 0], "none is right: the first to stop"


def test_residual_and_confidence_wait_for_all() -> None:
    some = chains(
        [[0, 0, 0], [1, 1, 1], [2, 2, 2]],
        [2, 7, 4],
        sure=[0.9, 0.2, 0.5],
        residual=[0.5, 0.01, 0.3],
    )
    assert told(choose("residual", some)) == ([1, 1, 1], True, 7, 16)
    assert told(choose("confidence", some)) == ([0, 0, 0], True, 7, 16)
    masked = chains([[NONE, NONE, NONE], [1, 1, 1]], [2, 2], sure=[0.9, 0.2])
    assert told(choose("confidence", masked))[0] == [1, 1, 1], "masks are not sure of anything"


def test_majority_is_of_whole_answers() -> None:
    some = chains([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0]], [3] * 6)
    assert told(choose("majority", some))[0] == [1, 0, 0]
    # per position 0 1 0 0 wins nowhere as a whole
    split = chains([[0, 0, 1], [0, 1, 0], [1, 0, 0]], [6, 4, 5])
    assert told(choose("majority", split))[0] == [0, 1, 0], "a tie goes to the first to stop"
    masked = chains([[NONE, 1, 1], [NONE, 1, 1], [2, 2, 2]], [3, 3, 3], [False, False, True])
    assert told(choose("majority", masked))[0] == [2, 2, 2], "unfinished answers do not count"


def test_vote_is_per_position() -> None:
    split = chains([[0, 0, 1], [0, 1, 0], [1, 0, 0]], [6, 4, 5])
    choice = choose("vote", split)
    assert told(choice) == ([0, 0, 0], True, 6, 18)
    assert choice.answer.confidence[0].tolist() == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3])
    masked = chains([[NONE, 1, NONE], [NONE, NONE, NONE], [NONE, 1, 2]], [3] * 3, [False] * 3)
    assert told(choose("vote", masked))[0] == [NONE, 1, 2], "masks do not vote"


def test_average_is_of_probabilities_not_of_votes() -> None:
    """Method.md's row r: the two readings of the paper's sentence differ."""
    strong, weak = [0.0, 0.95, 0.05], [0.5, 0.3, 0.2]
    p = torch.tensor([[[weak] * 4, [weak] * 4, [strong] * 4]])
    some = chains([[0, 0, 0], [0, 0, 0], [1, 1, 1]], [3, 4, 5], probabilities=p)
    assert told(choose("average", some)) == ([1, 1, 1], True, 5, 15)
    assert told(choose("vote", some))[0] == [0, 0, 0]
    sure = choose("average", some).answer.confidence
    assert sure[0].tolist() == pytest.approx([1, *[(0.3 + 0.3 + 0.95) / 3] * 3])


def test_clues_stay_under_every_rule() -> None:
    p = torch.full((1, 2, 4, K), 1 / K)
    some = chains([[0, 0, 0], [1, 1, 1]], [3, 4], probabilities=p)
    for rule in RULES:
        assert int(choose(rule, some).answer.tokens[0, 0]) == 2


def problems(count: int = 12) -> tuple[Problem, torch.Tensor]:
    return small_problems(task, count)


def run_all(
    model: Knowing, batch: Problem, count: int, sampler=None, size: int = 1024
) -> tuple[Chains, torch.Tensor]:
    found = Chains.empty(batch, count, task.vocabulary, predictions=True)
    right = torch.zeros_like(found.stopped)
    for part in chains_of(
        sampler or Chain(steps=40), model, batch, count, 3, size, predictions=True
    ):
        row, chain = found.add(part)
        right[row, chain] = task.verify(batch[row], part.answer.tokens)
    return found, right


def knowing(skill: float = 0.93, commit: float = 0.9) -> Knowing:
    batch, answers = problems()
    return Knowing(answers, batch.clue, task.vocabulary, skill, commit)


def test_the_first_chains_of_many_are_those_of_few() -> None:
    batch, _ = problems()
    many, _ = run_all(knowing(), batch, 5)
    few, _ = run_all(knowing(), batch, 2, size=7)
    for name in ("tokens", "stopped", "steps", "confidence", "residual", "probabilities"):
        assert torch.equal(getattr(few, name), getattr(many[:, :2], name)), name
    assert bool(many.ended.all())


def test_chains_of_one_problem_differ() -> None:
    batch, _ = problems()
    found, _ = run_all(knowing(0.6, 0.6), batch, 3)
    assert not torch.equal(found.tokens[:, 0], found.tokens[:, 1])


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("size", [4, 1024])
def test_ensemble_answers_as_the_rule_does_on_all_chains(rule: str, size: int) -> None:
    """Also where the rule cuts chains off, whatever the batch: same answers, same costs."""
    batch, _ = problems()
    seed = int(torch.randint(1 << 62, (), generator=generator(9)))
    found = Chains.empty(batch, 4, task.vocabulary, predictions=True)
    right = torch.zeros_like(found.stopped)
    for part in chains_of(Chain(steps=40), knowing(), batch, 4, seed, predictions=True):
        row, chain = found.add(part)
        right[row, chain] = task.verify(batch[row], part.answer.tokens)
    expected = RULES[rule].choose(batch, found, right)
    model = knowing()
    choice = ensemble(model, batch, generator(9), Chain(steps=40), task, 4, rule, size)
    assert torch.equal(choice.answer.tokens, expected.answer.tokens)
    assert torch.equal(choice.answer.steps, expected.answer.steps)
    assert torch.equal(choice.calls, expected.calls)
    assert torch.equal(choice.answer.stopped, expected.answer.stopped)
    if size >= 48:  # all chains side by side: not a call more than counted
        assert sum(model.calls) == int(choice.calls.sum())


def test_early_rules_save_calls() -> None:
    batch, _ = problems()
    spent = {}
    for rule in ("first", "majority"):
        model = knowing()
        ensemble(model, batch, generator(), Chain(steps=200), task, 6, rule)
        spent[rule] = sum(model.calls)
    assert spent["first"] < 0.6 * spent["majority"]


def test_rivals_come_in_ensembles_too() -> None:
    batch, answers = problems()
    choice = ensemble(knowing(0.8), batch, generator(), Euler(steps=8), task, 15, "vote")
    assert float((choice.answer.tokens == answers).float().mean()) > 0.97
    assert bool((choice.answer.tokens[batch.clue] == batch.tokens[batch.clue]).all())


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="rule 'best' is unknown; known: average, vote"):
        rule_named("best")
    batch, _ = problems()
    with pytest.raises(InputError, match="0 chains"):
        list(chains_of(Chain(), knowing(), batch, 0, 0))
