"""The classical Countdown engine: make instances, solve them, list every answer.

Instances are whole numbers [N, k] with targets [N]; answers are steps [.., k - 1, 4] of (a, op, b,
c) for `a op b = c`, op an index into OPERATORS, and -1 throughout a step that is not needed.
Everything depends on its arguments alone: the same seed gives the same instances.

The networks never use it: it makes and checks data.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samm.data import countdown_search as searcher
from samm.data.countdown_search import LIMIT, OPERATORS

__all__ = ["LIMIT", "OPERATORS", "all_answers", "answers", "first_answers", "instances"]

Numbers = NDArray[np.int64]


def instances(
    count: int, seed: int, first: int, size: int, targets: Sequence[int], highest: int = 99
) -> tuple[Numbers, Numbers, Numbers]:
    """Instances number `first`, `first + 1`, ...: numbers [N, k], targets [N], steps [N, k-1, 4].

    The distribution of the public training data: a uniform target, uniform numbers that reach it.
    """
    numbers = np.zeros((count, size), np.int64)
    chosen = np.zeros(count, np.int64)
    steps = np.zeros((count, size - 1, 4), np.int64)
    searcher.make(seed, first, np.array(targets, np.int64), highest, numbers, chosen, steps)
    return numbers, chosen, steps


def first_answers(
    numbers: ArrayLike, targets: ArrayLike, every: bool = True
) -> tuple[Numbers, NDArray[np.bool_]]:
    """One answer of each instance, and whether there is any.  [N, k-1, 4], [N]"""
    numbers, targets = np.asarray(numbers, np.int64), np.asarray(targets, np.int64)
    steps = np.full((len(numbers), numbers.shape[1] - 1, 4), -1, np.int64)
    counts = np.zeros(len(numbers), np.int64)
    searcher.first_of_all(numbers, targets, every, steps, counts)
    return steps, counts > 0


def answers(
    numbers: ArrayLike, targets: ArrayLike, every: bool = True, limit: int = 100_000
) -> NDArray[np.int64]:
    """How many answers each instance has, counting no further than `limit`.  [N]"""
    numbers, targets = np.asarray(numbers, np.int64), np.asarray(targets, np.int64)
    counts = np.zeros(len(numbers), np.int64)
    space = np.zeros((limit, numbers.shape[1] - 1, 4), np.int64)
    searcher.count_all(numbers, targets, every, space, counts)
    return counts


def all_answers(
    numbers: ArrayLike, target: int, every: bool = True, limit: int = 1_000_000
) -> Numbers:
    """Every answer of one instance, however it can be written.  [k] -> [answers, k-1, 4]"""
    numbers = np.asarray(numbers, np.int64)
    size = 1024
    while True:
        space = np.zeros((min(size, limit), len(numbers) - 1, 4), np.int64)
        found = searcher.search(numbers, target, searcher.OPTIONS, every, space)
        if found < len(space) or len(space) == limit:
            return space[:found]
        size *= 16
