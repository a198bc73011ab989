"""Seeds for parts of a run: every (seed, numbers...) has a stream of its own."""


def mix(seed: int, *numbers: int) -> int:
    """A 64-bit seed from several numbers, by splitmix64 over each."""
    x = seed
    for number in numbers:
        x = (x * 0xD1342543DE82EF95 + number + 1) & (2**64 - 1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = ((x ^ (x >> shift)) * factor) & (2**64 - 1)
        x ^= x >> 31
    return x
