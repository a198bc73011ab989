"""Seeds for parts of a run: every (seed, numbers...) has a stream of its own."""

SPREAD = 0xD1342543DE82EF95
"""Sets numbers apart before they are scrambled."""
FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shifts and factors of splitmix64's finaliser."""


def mix(seed: int, *numbers: int) -> int:
    """A 64-bit seed from several numbers, by splitmix64 over each."""
    x = seed
    for number in numbers:
        x = (x * SPREAD + number + 1) & (2**64 - 1)
        for shift, factor in FACTORS:
            x = ((x ^ (x >> shift)) * factor) & (2**64 - 1)
        x ^= x >> 31
    return x
