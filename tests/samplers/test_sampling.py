"""The engine: refilling the batch, random numbers of one's own, trajectories, names."""

import pytest
import torch
from dummies import Knowing, KnowingNetwork, small_problems

from samm import tasks
from samm.config import Config
from samm.errors import InputError
from samm.samplers import Chain, Euler, TopK, sample
from samm.samplers.base import Compiled
from samm.samplers.engine import run
from samm.samplers.registry import SAMPLERS, build, suitable
from samm.samplers.streams import Chances, keys
from samm.samplers.trajectory import Recorder

task = tasks.get("sudoku", box_rows=2, box_cols=2)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def knowing(count: int, skill: float = 0.95, commit: float = 0.9) -> Knowing:
    batch, answers = small_problems(task, count)
    return Knowing(answers, batch.clue, task.vocabulary, skill, commit)


def test_the_batch_stays_full_until_the_queue_is_empty() -> None:
    batch, _ = small_problems(task, 100)
    model = knowing(100)
    answer = sample(model, batch, generator(), Chain(steps=500), batch=16)
    total = int((answer.steps + 1).sum())
    assert sum(model.calls) == total, "every example costs its own steps and no more"
    last_refill = max(i for i, size in enumerate(model.calls) if size == 16)
    assert set(model.calls[: last_refill + 1]) == {16}
    assert len(model.calls) <= total / 16 + int(answer.steps.max()) + 1


def test_examples_may_have_caps_of_their_own() -> None:
    batch, _ = small_problems(task, 10)
    number = torch.arange(10)
    cap = number % 4
    parts = list(run(Chain(steps=99), knowing(10, 0.3, 0.3), batch, keys(0, number), cap=cap))
    steps = torch.cat([p.answer.steps for p in parts])
    index = torch.cat([p.index for p in parts])
    assert torch.equal(steps[index.argsort()], cap)


def test_the_residual_is_the_change_of_the_prediction() -> None:
    batch, answers = small_problems(task, 4)

    class Learning(Knowing):
        """Its skill depends on how many tokens it sees."""

        def __call__(self, tokens, clue, time=None):
            self.skill = 0.4 + 0.5 * float((tokens != task.mask).all())
            return super().__call__(tokens, clue, time)

    one = batch[:1]
    model = Learning(answers, batch.clue, task.vocabulary, 0.4, 1 - 1e-7)
    key = keys(0, torch.arange(1))
    (part,) = run(Chain(steps=1, least_steps=0), model, one, key, predictions=True)
    # from 0.4 to 0.9 at the right token and 0.2 to 1/30 at the three others: half of 0.5 + 0.5
    assert float(part.residual[0]) == pytest.approx(0.5, abs=1e-5)
    assert part.probabilities.shape == (1, task.length, task.vocabulary)
    cap = torch.zeros(1)
    (start,) = run(Chain(least_steps=0), model, one, key, cap=cap, predictions=True)
    assert float(start.residual[0]) == 1, "one look, no change known"
    (bare,) = run(Chain(steps=1, least_steps=0), model, one, key)
    assert bare.probabilities.numel() == 0, "nothing is kept that nobody asked for"


def test_empty_batches_are_refused() -> None:
    batch, _ = small_problems(task, 2)
    with pytest.raises(InputError, match="batch 0"):
        sample(knowing(2), batch, generator(), Chain(), batch=0)


class TestStreams:
    def test_numbers_are_uniform_and_belong_to_their_example(self) -> None:
        number = torch.arange(3000)
        u = Chances(keys(5, number), torch.zeros(3000).long(), 81).uniform()
        assert 0 <= float(u.min()) < 1e-4
        assert 1 - 1e-4 < float(u.max()) < 1
        seen = torch.histc(u, 64, 0, 1) / u.numel()
        assert torch.allclose(seen, torch.full((64,), 1 / 64), atol=6e-4)
        some = Chances(keys(5, number[7:9]), torch.zeros(2).long(), 81).uniform()
        assert torch.equal(some, u[7:9])

    def test_seed_problem_chain_step_position_and_lane_all_matter(self) -> None:
        zero, count = torch.zeros(2000).long(), torch.arange(2000)

        def u(seed=0, problem=zero, chain=zero, step=zero, lane=0):
            return Chances(keys(seed, problem, chain), step, 4).uniform(lane)

        base = u()
        assert bool((base == base[:1]).all())
        for other in (u(1), u(problem=count + 1), u(chain=count + 1), u(step=count + 1), u(lane=1)):
            assert float((other == base).float().mean()) < 0.01
        for varied in (u(problem=count), u(chain=count), u(step=count)):
            centred = varied - 0.5
            assert abs(float(centred.mean())) < 0.015
            assert float(centred.var()) == pytest.approx(1 / 12, rel=0.05)
            after = (centred[1:] * centred[:-1]).mean() * 12
            assert abs(float(after)) < 0.06, "neighbours do not follow one another"
            across = (centred[:, 1:] * centred[:, :-1]).mean() * 12
            assert abs(float(across)) < 0.06

    def test_gumbel_noise_has_its_moments(self) -> None:
        number = torch.arange(20_000)
        noise = Chances(keys(1, number), torch.zeros(20_000).long(), 5).gumbel(2)
        assert float(noise.mean()) == pytest.approx(0.5772, abs=0.02)
        assert float(noise.var()) == pytest.approx(1.645, rel=0.03)
        assert bool(noise.isfinite().all())


def test_a_compiled_network_sees_full_batches_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the compiler left out: full batches and nearly full ones, the same answers."""
    batch, _ = small_problems(task, 40)
    plain = sample(knowing(40), batch, generator(), Chain(steps=99), batch=16)
    seen = []

    def full(tokens, clue, time):
        seen.append(len(tokens))
        return model(tokens, clue, time)

    model = knowing(40)
    network = KnowingNetwork(task, model)
    monkeypatch.setattr(torch, "compile", lambda network, dynamic: full)
    compiled = sample(Compiled(network, 16), batch, generator(), Chain(steps=99), batch=16)
    assert set(seen) == {16}
    assert min(model.calls) < 4, "small ones are left to the network as it is"
    for name in ("tokens", "stopped", "steps", "confidence"):
        assert torch.equal(getattr(plain, name), getattr(compiled, name))
    timed = Euler(steps=8)
    with_time = sample(Compiled(network, 16), batch, generator(), timed, batch=16)
    assert torch.equal(with_time.tokens, sample(model, batch, generator(), timed, batch=16).tokens)


def test_trajectories_tell_every_state() -> None:
    batch, answers = small_problems(task, 20)
    recorder = Recorder([3, 17])
    answer = sample(knowing(20), batch, generator(), Chain(steps=99), batch=6, watch=recorder)
    for number in (3, 17):
        path = recorder[number]
        length = int(answer.steps[number]) + 1
        assert path.states.shape == path.confidence.shape == path.certainty.shape == (length, 16)
        assert path.progress.shape == (length,)
        assert torch.equal(path.states[0], batch.tokens[number])
        assert torch.equal(path.states[-1], answer.tokens[number])
        share = (path.states == answers[number])[:, batch.free[number]].float().mean(-1)
        assert torch.allclose(path.progress, share, atol=1e-5), "this network knows its progress"


class TestRegistry:
    @staticmethod
    def config(kind: str = "samm", **path: object) -> Config:
        paths = {"gidd": "hybrid", "d3pm": "uniform"}
        steps = [0, 1] if kind == "samm" else [1]
        return Config.build(
            {
                "objective": {"kind": kind},
                "path": {"kind": paths.get(kind, "masking"), **path},
                "states": {"steps": steps},
            }
        )

    @pytest.mark.parametrize("kind", ["samm", "cross_entropy", "mgdm", "gidd", "d3pm"])
    def test_every_training_has_its_samplers(self, kind: str) -> None:
        config = self.config(kind)
        names = suitable(config)
        assert names
        assert build(config).name == names[0]
        for name in names:
            assert build(config, name, {"steps": 7}).steps == 7

    def test_the_path_of_the_training_is_taken_over(self) -> None:
        euler = build(self.config("cross_entropy", exponent=3.0))
        assert isinstance(euler, Euler)
        assert euler.exponent == 3
        top_k = build(self.config(exponent=3.0), "top_k", {"exponent": 1})
        assert isinstance(top_k, TopK)
        assert top_k.exponent == 1
        assert build(self.config("gidd", uniform_share=0.2)).uniform_share == 0.2

    @pytest.mark.parametrize(
        ("kind", "name", "options", "message"),
        [
            ("samm", "dice", {}, "sampler 'dice' is unknown; known: chain, restart, euler"),
            ("cross_entropy", "chain", {}, "does not suit a network trained with"),
            ("gidd", "euler", {}, "expected gidd"),
            ("samm", "chain", {"speed": 3}, "unknown key 'chain.speed'; known: steps"),
            ("samm", "chain", {"steps": "many"}, "chain.steps = 'many': expected int"),
            ("cross_entropy", "euler", {"clock": "progress"}, "does not know its progress"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, kind, name, options, message) -> None:
        with pytest.raises(InputError, match=message):
            build(self.config(kind), name, options)

    def test_names_are_unique(self) -> None:
        assert set(SAMPLERS) == {
            "chain", "restart", "euler", "top_k", "margin", "remdm", "mgdm", "gidd", "d3pm",
            "left_to_right",
        }  # fmt: skip
