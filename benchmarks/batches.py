"""Augmented training puzzles per second of the device-side sampler.

python benchmarks/batches.py --device cuda --batch 65536
"""

import argparse
import time

import numpy as np
import torch

from samm import runtime, tasks
from samm.data.batches import Batches
from samm.data.format import Dataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the data set")
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    device = runtime.choose(arguments.device).device
    task = tasks.get("sudoku")
    random = np.random.default_rng(0)
    # What is drawn does not matter for the speed: random tokens, spread over a set of real size.
    tokens, answers = random.integers(0, 10, (2, arguments.rows, 81), dtype=np.uint8)
    ratings = np.zeros(arguments.rows, np.float32)
    batches = Batches([Dataset(task, tokens, answers, ratings, {})], arguments.batch, 0, device)

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    for step in range(3):
        batches.draw(step)
    wait()
    start, step = time.perf_counter(), 3
    while time.perf_counter() - start < arguments.seconds:
        for _ in range(10):
            batches.draw(step)
            step += 1
        wait()
    spent = time.perf_counter() - start
    rate = (step - 3) * arguments.batch / spent
    print(f"{device} ({torch.get_num_threads()} threads), batch {arguments.batch:,}: {rate:,.0f}/s")


if __name__ == "__main__":
    main()
