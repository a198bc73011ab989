"""What the compiled modules share: the compiler, 64-bit words, and random streams.

numba caches compiled functions per file: after a change in a file that others inline run `make
recompile`, or they stay as they were.
"""

from typing import Any

import numpy as np
from numba import njit

compiled: Any = njit(cache=True, nogil=True)
U = np.uint64
ZERO, ONE = U(0), U(1)


@compiled
def stream(seed, index):
    """A random stream of its own for every (seed, index): splitmix64 of both, never zero."""
    random = np.empty(1, np.uint64)
    x = U(seed) * U(0xD1342543DE82EF95) + U(index) + ONE
    for _ in range(2):
        x += U(0x9E3779B97F4A7C15)
        x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
        x ^= x >> U(31)
    random[0] = x | ONE
    return random


@compiled
def draw(random, bound):
    """The next integer in [0, bound) of an xorshift64* stream."""
    x = random[0]
    x ^= x >> U(12)
    x ^= x << U(25)
    x ^= x >> U(27)
    random[0] = x
    return np.int64((((x * U(0x2545F4914F6CDD1D)) >> U(32)) * U(bound)) >> U(32))
