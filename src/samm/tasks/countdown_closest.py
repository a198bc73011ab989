"""Of all answers to a Countdown instance, the one that a state is closest to.

Most instances have several answers. A state that the network wrote may be on its way to another
one than the data holds, and would be told that it is wrong. So all chains of steps are executed at
once, on the device: 9,216 ways to write three steps on four numbers.
"""

import math
from functools import cache
from itertools import permutations

import torch
from torch import Tensor

from samm.tasks.countdown_forms import LIMIT, Slots


def closest(form: Slots, state: Tensor, answers: Tensor) -> Tensor:
    """The right answer that agrees with a state [B, d] at most positions; in doubt the given one.

    Every answer that uses all numbers is considered, however it can be written.
    """
    numbers, target = form.question(state)
    pool = numbers.int()[:, None]  # [B, 1, N]: what is left in each chain
    score = torch.zeros(len(state), 1, dtype=torch.int16, device=state.device)
    right = torch.ones_like(score, dtype=torch.bool)
    for spans in form.chain:
        a, b, c, possible = _results(pool)  # [B, P, pairs, 1] twice, [B, P, pairs, 4] twice
        agreement = _agreement(form, state, spans, a, b, c)
        score = (score[..., None, None] + agreement).flatten(1)
        right = (right[..., None, None] & possible).flatten(1)
        pool = _remaining(pool, c)
    right &= pool[..., 0] == target[:, None]
    best = torch.where(right, score, -1).max(1)
    given = (state == answers)[:, form.given[-1].stop :].sum(1)
    found = _written(form, state, numbers, best.indices)
    return torch.where((best.values > given)[:, None], found, answers)


@cache
def _pairs(count: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Ordered pairs of `count` numbers, and what each leaves.  [pairs] twice, [pairs, count - 2]"""
    pairs = list(permutations(range(count), 2))
    rest = [[k for k in range(count) if k not in pair] for pair in pairs]
    first, second = torch.tensor(pairs, device=device).T
    left = torch.tensor(rest, dtype=torch.long, device=device).view(len(pairs), count - 2)
    return first, second, left


def _results(pool: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All steps on every pool [B, P, n]: a, b, c, and whether the step is allowed."""
    first, second, _ = _pairs(pool.shape[-1], pool.device)
    a, b = pool[..., first, None], pool[..., second, None]
    some = b.clamp(min=1)
    c = torch.cat([a + b, a - b, a * b, a // some], -1)
    exact = (b > 0) & (a % some == 0)
    possible = torch.cat([a + b < LIMIT, a >= b, a * b < LIMIT, exact], -1)
    return a, b, c, possible


def _remaining(pool: Tensor, c: Tensor) -> Tensor:
    """The pools after every step: what the pair leaves, and the result.  [B, P·pairs·4, n - 1]"""
    rest = pool[..., _pairs(pool.shape[-1], pool.device)[2]]  # [B, P, pairs, n - 2]
    rest = rest[..., None, :].expand(*c.shape, -1)
    return torch.cat([rest, c[..., None]], -1).flatten(1, 3)


def _agreement(
    form: Slots, state: Tensor, spans: list[range], a: Tensor, b: Tensor, c: Tensor
) -> Tensor:
    """At how many positions of its four fields a step is what the state holds.  [B, P, pairs, 4]"""
    operators = form.alphabet.operator + torch.arange(4, device=state.device)
    total = (state[:, spans[1].start, None] == operators)[:, None, None].to(torch.int16)
    for value, span in ((a, spans[0]), (b, spans[2]), (c, spans[3])):
        base = form.alphabet.base
        for place, position in enumerate(reversed(span)):
            digit = value // base**place % base
            total = total + (digit == state[:, position, None, None, None])
    return total


def _written(form: Slots, state: Tensor, pool: Tensor, chain: Tensor) -> Tensor:
    """The tokens of chain number `chain` [B] in the order of `closest`, on the numbers `pool`."""
    tokens, rows = state.clone(), torch.arange(len(state), device=state.device)
    ways = [4 * n * (n - 1) for n in range(form.size, 1, -1)]
    for step, spans in enumerate(form.chain):
        way = chain // math.prod(ways[step + 1 :]) % ways[step]
        first, second, rest = (x[way // 4] for x in _pairs(pool.shape[1], pool.device))
        a, b, operator = pool[rows, first], pool[rows, second], way % 4
        results = torch.stack([a + b, a - b, a * b, a // b.clamp(min=1)], 1)
        c = results[rows, operator]
        tokens[:, spans[1].start] = form.alphabet.operator + operator
        for value, span in ((a, spans[0]), (b, spans[2]), (c, spans[3])):
            for place, position in enumerate(reversed(span)):
                base = form.alphabet.base
                tokens[:, position] = value // base**place % base
        pool = torch.cat([pool.gather(1, rest), c[:, None]], 1)
    return tokens
