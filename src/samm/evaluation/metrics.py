"""Accuracy of answers, with its uncertainty."""

from dataclasses import dataclass

from torch import Tensor

from samm.tasks import Answer


@dataclass(frozen=True)
class Accuracy:
    """Shares of all `n` problems."""

    n: int
    solved: float
    """Answered right, stopped or not."""
    ci95: tuple[float, float]
    """Wilson's interval for `solved`."""
    stopped: float
    stopped_right: float
    false_stops: float
    """Stopped, and wrong."""
    mean_steps: float


def accuracy(answer: Answer, right: Tensor) -> Accuracy:
    """Of answers that are `right` [B] or not; see `Task.right`."""
    n = len(right)
    solved = int(right.sum())
    return Accuracy(
        n=n,
        solved=solved / n,
        ci95=wilson(solved, n),
        stopped=float(answer.stopped.float().mean()),
        stopped_right=float((answer.stopped & right).float().mean()),
        false_stops=float((answer.stopped & ~right).float().mean()),
        mean_steps=float(answer.steps.float().mean()),
    )


def wilson(successes: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval for a share; well behaved at 0 and 1."""
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, middle - spread), min(1.0, middle + spread)
