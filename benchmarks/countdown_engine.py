"""Speed of the Countdown engine on one thread of this machine.

python benchmarks/countdown_engine.py
"""

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from samm import tasks
from samm.data import countdown_engine as engine


def rate(work: Callable[[], object], items: int) -> int:
    """Items per second of the best of three."""
    work()  # compiles
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return round(items / best)


def main() -> None:
    torch.set_num_threads(1)
    result = {}
    for size, count in ((3, 50_000), (4, 20_000), (5, 500)):
        numbers, targets, _ = engine.instances(count, 1, 0, size, range(10, 101))
        found = engine.answers(numbers, targets)
        result[f"{size} numbers"] = {
            "instances made per second": rate(
                lambda size=size, count=count: engine.instances(count, 2, 0, size, range(10, 101)),
                count,
            ),
            "instances per second, all answers counted": rate(
                lambda numbers=numbers, targets=targets: engine.answers(numbers, targets), count
            ),
            "answers: median, mean, most": [
                float(np.median(found)), round(float(found.mean()), 1), int(found.max())
            ],
        }  # fmt: skip
    task = tasks.get("countdown")
    result["examples per second, as tokens"] = rate(
        lambda: [task.make(3, chunk) for chunk in range(20)], 20 * 1024
    )
    tokens, answers, _ = task.make(0, 0)
    state, given = torch.from_numpy(tokens[:256]), torch.from_numpy(answers[:256])
    result["closest of all answers, states per second"] = rate(
        lambda: task.closest(state, given), 256
    )
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
