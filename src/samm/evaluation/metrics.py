"""Accuracy of answers, with its uncertainty, and what the answers cost."""

from dataclasses import dataclass

from torch import Tensor

from samm.tasks import Batch


@dataclass(frozen=True)
class Outcome(Batch):
    """What became of n problems."""

    right: Tensor
    """[n] bool"""
    stopped: Tensor
    """[n] bool"""
    steps: Tensor
    """[n]"""
    calls: Tensor
    """[n] network calls of all chains together."""


@dataclass(frozen=True)
class Score:
    """Shares of all `n` problems."""

    n: int
    solved: int
    """Answered right, stopped or not."""
    accuracy: float
    ci95: tuple[float, float]
    """Wilson's interval for the accuracy."""
    stopped: float | None
    """By the network's own decision; None where it has none to make."""
    stopped_right: float | None
    false_stops: float | None
    """Stopped, and wrong."""
    mean_steps: float
    median_steps: float
    p90_steps: float
    """Nine in ten problems take no more."""
    calls_per_puzzle: float
    """Network calls, of all chains together."""


def score(outcome: Outcome, learned_stop: bool = True) -> Score:
    """Shares and costs of one problem or more."""
    right, stopped, steps = outcome.right, outcome.stopped, outcome.steps.double()
    n, solved = len(right), int(right.sum())
    return Score(
        n=n,
        solved=solved,
        accuracy=solved / n,
        ci95=wilson(solved, n),
        stopped=_share(stopped) if learned_stop else None,
        stopped_right=_share(stopped & right) if learned_stop else None,
        false_stops=_share(stopped & ~right) if learned_stop else None,
        mean_steps=float(steps.mean()),
        median_steps=float(steps.quantile(0.5)),
        p90_steps=float(steps.quantile(0.9, interpolation="higher")),
        calls_per_puzzle=float(outcome.calls.double().mean()),
    )


def _share(which: Tensor) -> float:
    return float(which.double().mean())


def wilson(successes: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval for a share; well behaved at 0 and 1."""
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    # Rounding must not put the share outside its own interval: at 0 and 1 they meet.
    return max(0.0, min(middle - spread, share)), min(1.0, max(middle + spread, share))
