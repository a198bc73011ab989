"""Schedules and paths: end points, marginals, and the paper's remark on the progress."""

import pytest
import torch

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.path import Hybrid, Masking, Path, Uniform
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


PATHS = (Masking(Power(2.0)), Hybrid(0.2), Uniform(Power(1.5)))


@pytest.mark.parametrize("path", PATHS, ids=repr)
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
        return (t / (1 + path.disorder(t))).log()

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


def joint(path: Path, x: int, t: float, s: float) -> torch.Tensor:
    """q(z_s, z_t | x) of one position.  [z_s, z_t]"""
    states = torch.arange(K + 1)[:, None]  # one example per z_t
    times = [torch.full((K + 1,), value, dtype=torch.float64) for value in (t, s)]
    forward = path.likelihood(states, *times, K)[:, 0]  # [z_t, z_s]
    clean = path.marginal(torch.tensor([[x]]), times[1][:1], K)[0, 0]  # [z_s]
    return forward.T * clean[:, None]


@pytest.mark.parametrize("path", PATHS, ids=repr)
@pytest.mark.parametrize(("t", "s"), [(0.0, 0.1), (0.3, 0.5), (0.6, 1.0)])
def test_noise_in_two_steps_is_noise_in_one(path: Path, t: float, s: float) -> None:
    """Σ_{z_s} q(z_t | z_s) q_s(z_s | x) = q_t(z_t | x), and every step is a distribution."""
    at_t = path.marginal(torch.tensor([[2]]), torch.tensor([t], dtype=torch.float64), K)[0, 0]
    assert torch.allclose(joint(path, 2, t, s).sum(0), at_t)
    states = torch.arange(K + 1)[:, None]
    times = [torch.full((K + 1,), value, dtype=torch.float64) for value in (t, s)]
    forward = path.likelihood(states, *times, K)[:, 0]  # [z_t, z_s]
    possible = path.noise(times[1][:1], K)[0] > 0
    possible[:K] = True  # a right token can stand anywhere
    assert torch.allclose(forward.sum(0)[possible], torch.ones(K + 1).double()[possible])


@pytest.mark.parametrize("path", PATHS, ids=repr)
@pytest.mark.parametrize("mixture", [False, True])
def test_going_back_is_bayes(path: Path, mixture: bool) -> None:
    """With the answer known both readings are q(z_s | z_t, x); with p, the mean for the mixture."""
    t, s = 0.3, 0.5
    tables = torch.stack([joint(path, x, t, s) for x in range(K)])  # [x, z_s, z_t]
    states = torch.arange(K + 1)[:, None]
    times = [torch.full((K + 1,), value, dtype=torch.float64) for value in (t, s)]
    known = torch.nn.functional.one_hot(torch.full((K + 1, 1), 2), K).double()
    found = path.reverse(states, known, *times, mixture)[:, 0]  # [z_t, z_s]
    reachable = tables[2].sum(0) > 0
    bayes = (tables[2] / tables[2].sum(0)).T
    assert torch.allclose(found[reachable], bayes[reachable], atol=1e-6)
    if mixture:
        p = torch.tensor([0.4, 0.1, 0.2, 0.3, 0.0], dtype=torch.float64)
        found = path.reverse(states, p.expand(K + 1, 1, K), *times, mixture)[:, 0]
        each = tables / tables.sum(1, keepdim=True)  # q(z_s | z_t, x)
        mean = torch.einsum("x,xst->ts", p, each.nan_to_num())
        seen = (tables.sum(1) > 0).all(0)  # z_t that every x can lead to
        assert torch.allclose(found[seen], mean[seen], atol=1e-6)


def test_draws_have_their_probabilities_and_are_never_impossible() -> None:
    p = torch.tensor([0.5, 0.0, 0.3, 0.2, 0.0])
    chance = torch.rand(50_000, generator=generator())
    drawn = draw(p.expand(50_000, -1), chance)
    seen = torch.bincount(drawn, minlength=5) / 50_000
    assert seen[1] == seen[4] == 0
    assert torch.allclose(seen, p, atol=0.012)
    assert int(draw(p, torch.tensor(1 - 2.0**-24))) == 3
    assert int(draw(p, torch.tensor(0.0))) == 0
    assert int(draw(7 * p, torch.tensor(0.75))) == 2, "weights need not sum to one"
