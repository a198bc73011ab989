"""Schedules and paths: end points, marginals, and the paper's remark on the progress."""

import pytest
import torch

from samm.errors import InputError
from samm.process import race
from samm.process.path import Hybrid, Masking
from samm.process.prediction import committed_share, progress_target
from samm.process.schedule import Power

K = 5


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_schedules_run_from_0_to_1_at_their_rate(exponent: float) -> None:
    schedule = Power(exponent)
    t = torch.linspace(0, 1, 101, dtype=torch.float64)
    kappa = schedule.kappa(t)
    assert (kappa[0], kappa[-1]) == (0, 1)
    assert bool((kappa.diff() > 0).all())
    inner, h = t[5:-5], 1e-6
    slope = (schedule.kappa(inner + h) - schedule.kappa(inner - h)) / (2 * h)
    assert torch.allclose(schedule.rate(inner), slope / (1 - schedule.kappa(inner)), rtol=1e-6)


def test_schedules_refuse_nonsense() -> None:
    with pytest.raises(InputError, match="exponent 0"):
        Power(0)
    with pytest.raises(InputError, match="uniform_share 1"):
        Hybrid(1.0)


@pytest.mark.parametrize("path", [Masking(Power(2.0)), Hybrid(0.2)])
@pytest.mark.parametrize("t", [0.0, 0.3, 0.8, 1.0])
def test_samples_follow_the_marginal_and_clues_stay(path, t: float) -> None:
    count = 40_000
    answers = torch.tensor([[3, 1, 4]]).expand(count, -1)
    clue = torch.tensor([[False, False, True]]).expand(count, -1)
    times = torch.full((count,), t)
    marginal = path.marginal(answers[:1], times[:1], K)[0]
    assert torch.allclose(marginal.sum(-1), torch.ones(3))
    states = path.sample(answers, clue, times, K, generator())
    assert bool((states[:, 2] == 4).all())
    for position in (0, 1):
        seen = torch.bincount(states[:, position], minlength=K + 1) / count
        spread = (marginal[position] * (1 - marginal[position]) / count).sqrt()
        assert bool(((seen - marginal[position]).abs() <= 5 * spread).all())


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_expected_progress_is_kappa(exponent: float) -> None:
    """The remark after eq:real time: E[τ*] = κ_t on the masking path."""
    path, count, free = Masking(Power(exponent)), 20_000, 6
    answers = torch.randint(K, (count, 8), generator=generator())
    clue = torch.arange(8).expand(count, -1) >= free
    for t in (0.1, 0.5, 0.9):
        states = path.sample(answers, clue, torch.full((count,), t), K, generator(1))
        kappa = t**exponent
        spread = (kappa * (1 - kappa) / (free * count)) ** 0.5
        for share in (progress_target(states, answers, clue), committed_share(states, clue, K)):
            assert abs(float(share.mean()) - kappa) < 5 * spread


def test_progress_counts_right_free_positions_alone() -> None:
    answers = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 3]])
    states = torch.tensor([[0, 1, 4, K], [0, 1, 2, 3]])
    clue = torch.tensor([[True, False, False, False], [True] * 4])
    assert progress_target(states, answers, clue).tolist() == pytest.approx([1 / 3, 1])
    assert committed_share(states, clue, K).tolist() == pytest.approx([2 / 3, 1])


def test_hybrid_path_starts_masked_ends_right_and_has_the_share_of_noise_it_says() -> None:
    path = Hybrid(0.2)
    answers = torch.tensor([[2]])
    at = {t: path.marginal(answers, torch.tensor([t]), K)[0, 0] for t in (0.0, 0.5, 1.0)}
    assert at[0.0].tolist() == [0] * K + [1]
    assert at[1.0].tolist() == [0, 0, 1, 0, 0, 0]
    assert float(at[0.5][0] * K) == pytest.approx(0.2)


def test_hybrid_entry_rates_drive_the_marginal() -> None:
    """d/du q_u = (α'/α) q_u + entry rate, with α_u the coefficient of δ_x: by differences."""
    path, h = Hybrid(0.1), 1e-6
    answers = torch.tensor([[2]])

    def q(u: float) -> torch.Tensor:
        return path.marginal(answers, torch.tensor([1 - u], dtype=torch.float64), K)[0, 0]

    def log_alpha(u: float) -> torch.Tensor:
        t = torch.tensor(1 - u, dtype=torch.float64)
        return (t / (1 + path.noise(t))).log()

    for u in (0.2, 0.5, 0.7):
        slope = (q(u + h) - q(u - h)) / (2 * h)
        decay = (log_alpha(u + h) - log_alpha(u - h)) / (2 * h)
        into_mask, into_tokens = path.entry_rate(torch.tensor([1 - u], dtype=torch.float64))
        expected = torch.cat([(into_tokens / K).expand(K), into_mask])
        assert torch.allclose(slope - decay * q(u), expected, rtol=1e-5)


def test_blurring_a_certain_prediction_is_the_marginal() -> None:
    path, t = Hybrid(0.1), torch.tensor([0.3, 0.9])
    answers = torch.randint(K, (2, 7), generator=generator())
    certain = torch.nn.functional.one_hot(answers, K + 1).float()
    assert torch.allclose(path.blur(certain, t), path.marginal(answers, t, K))


def test_race_draws_each_token_as_often_as_it_should_and_never_the_impossible() -> None:
    p = torch.tensor([0.5, 0.0, 0.3, 0.2])
    drawn = race.draw(p.expand(50_000, -1), generator())
    seen = torch.bincount(drawn, minlength=4) / 50_000
    assert seen[1] == 0
    assert torch.allclose(seen, p, atol=0.012)
    times = torch.full((4,), torch.finfo(torch.float32).tiny)  # the smallest that clocks gives
    assert int(race.race(p, times)) == 0
    assert float(race.clocks(10, 1000, generator=generator()).min()) > 0
