"""Countdown by exhaustive search: every chain of steps, in one fixed order.

A node holds a pool of numbers. A step takes two of them, x before y in the pool, and puts its
result at the end of what remains. The order of the search is that of the public training data
(Stream of Search's generator): pairs from the front, and for each x + y, x · y, then the larger
less and through the smaller. The first answer in this order is the one that data holds.

A step is written (a, op, b, c) for `a op b = c`, with op an index into OPERATORS.
"""

import numpy as np

from samm.data.compiled import compiled, draw, stream

OPERATORS = "+-*/"
ADD, SUBTRACT, MULTIPLY, DIVIDE = 0, 1, 2, 3
LIMIT = 10_000
"""Results stay below it."""
OPTIONS = 7
"""Ways to write a step on two numbers; the last three are other ways to write one of the first."""


@compiled
def option(x, y, way):
    """The step number `way` on x, y (x earlier in the pool), or op -1 if there is none."""
    low, high = min(x, y), max(x, y)
    if way == 0:
        return x, ADD, y, x + y
    if way == 1 and x * y < LIMIT:
        return x, MULTIPLY, y, x * y
    if way == 2:
        return high, SUBTRACT, low, high - low
    if way == 3 and low > 0 and high % low == 0:
        return high, DIVIDE, low, high // low
    if way == 4 and x != y:
        return y, ADD, x, x + y
    if way == 5 and x != y and x * y < LIMIT:
        return y, MULTIPLY, x, x * y
    if way == 6 and low == 0 and high > 0:
        return low, DIVIDE, high, 0
    return 0, -1, 0, 0


@compiled
def reaches(x, y, target):
    """Does any step on x, y give the target?"""
    low, high = min(x, y), max(x, y)
    if low + high == target or high - low == target or low * high == target:
        return True
    return low > 0 and low * target == high


@compiled
def repeated(pools, level, size, i, j):
    """Were two numbers like the i-th and j-th of this level already tried, in either order?"""
    x, y = pools[level, i], pools[level, j]
    low, high = min(x, y), max(x, y)
    for p in range(i + 1):
        for q in range(p + 1, size):
            if p == i and q >= j:
                break
            x, y = pools[level, p], pools[level, q]
            if min(x, y) == low and max(x, y) == high:
                return True
    return False


@compiled
def search(numbers, target, ways, every, out):
    """Write up to len(out) answers into out [limit, steps, 4]; returns how many there are so far.

    `ways` bounds the options of a step: 4 for one way to write each, OPTIONS for all. With `every`
    a chain has to use every number; without, it ends with any step that gives the target. Unused
    steps of a short chain have op -1.
    """
    count, last = 0, len(numbers) - 2
    pools = np.zeros((last + 1, len(numbers)), np.int64)
    place = np.zeros((last + 1, 3), np.int64)  # i, j, way of each level
    steps = np.full((last + 1, 4), -1, np.int64)
    pools[0] = numbers
    level = 0
    place[0] = 0, 1, -1
    while level >= 0:
        size = len(numbers) - level
        if level == last:
            x, y = pools[level, 0], pools[level, 1]
            if reaches(x, y, target):
                for way in range(ways):
                    a, op, b, c = option(x, y, way)
                    if op >= 0 and c == target:
                        steps[level] = a, op, b, c
                        out[count] = steps
                        count += 1
                        if count == len(out):
                            return count
                steps[level] = -1
            level -= 1
            continue
        i, j, way = place[level, 0], place[level, 1], place[level, 2]
        way += 1
        if way == ways or (way == 0 and repeated(pools, level, size, i, j)):
            way, j = -1, j + 1
            if j == size:
                i, j = i + 1, i + 2
            place[level] = i, j, way
            if j >= size:
                steps[level] = -1
                level -= 1
            continue
        place[level] = i, j, way
        a, op, b, c = option(pools[level, i], pools[level, j], way)
        if op < 0:
            continue
        steps[level] = a, op, b, c
        if c == target and not every:
            out[count] = steps
            count += 1
            if count == len(out):
                return count
        if level == last - 1 and not reaches(pools[level, 3 - i - j], c, target):
            continue  # of three numbers one remains, beside the result
        filled = 0
        for k in range(size):
            if k != i and k != j:
                pools[level + 1, filled] = pools[level, k]
                filled += 1
        pools[level + 1, filled] = c
        level += 1
        place[level] = 0, 1, -1
    return count


@compiled
def make(seed, first, targets, highest, numbers, chosen, steps):
    """Instances first, first + 1, ... of the stream `seed`, each with its first answer.

    A target is drawn, then numbers from 1 to `highest` until they reach it with all of them.
    """
    for row in range(len(numbers)):
        random = stream(seed, first + row)
        target = targets[draw(random, len(targets))]
        while True:
            for k in range(numbers.shape[1]):
                numbers[row, k] = 1 + draw(random, highest)
            if search(numbers[row], target, 4, True, steps[row : row + 1]):
                break
        chosen[row] = target


@compiled
def count_all(numbers, targets, every, out, counts):
    """Numbers of answers of many instances, at most len(out) each."""
    for row in range(len(numbers)):
        counts[row] = search(numbers[row], targets[row], OPTIONS, every, out)


@compiled
def first_of_all(numbers, targets, every, out, counts):
    """The first answer of many instances, in out [N, steps, 4], and whether there is one."""
    for row in range(len(numbers)):
        counts[row] = search(numbers[row], targets[row], 4, every, out[row : row + 1])
