"""What a batch of mixed difficulty costs, against the ideal: the sum of its steps at full batch.

    python benchmarks/refill.py sudoku-6x6
    python benchmarks/refill.py RUN FILE --batch 256

Finished examples leave the batch and others take their places. The ideal is the number of network
calls times the cost of a call in a full batch (the network alone, nothing else); the table also has
what it costs to run batch after batch, each as long as its slowest example.
"""

import argparse
import statistics
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from samm import runtime, weights
from samm.data import convert
from samm.data.generate import chunks
from samm.samplers import Chain
from samm.samplers.engine import run
from samm.samplers.streams import keys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("file", type=Path, nargs="?", help="default: made by the task")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    chosen = runtime.choose(arguments.device, seed=0)
    network = weights.load(arguments.weights, chosen.device).network
    if arguments.file is None:
        made = np.concatenate([part.tokens for part in islice(chunks(network.task, seed=0), 12)])
        made = made[: arguments.limit]
    else:
        made = convert.load(arguments.file, network.task, arguments.limit).tokens
    tokens = torch.tensor(made, device=chosen.device).long()
    problems, batch = network.task.problem(tokens), min(arguments.batch, len(made))
    key = keys(0, torch.arange(len(made), device=chosen.device))
    sampler = Chain(steps=arguments.steps)

    def wait() -> None:
        if chosen.device.type == "cuda":
            torch.cuda.synchronize()

    def call() -> float:
        start = time.perf_counter()
        with torch.no_grad():
            network(tokens[:batch], problems.clue[:batch])
        wait()
        return time.perf_counter() - start

    def timed(parts: list[slice]) -> tuple[float, list[int]]:
        """Seconds, and the steps of every example."""
        start, steps = time.perf_counter(), []
        for rows in parts:
            for part in run(sampler, network, problems[rows], key[rows], batch):
                steps += part.answer.steps.tolist()
        wait()
        return time.perf_counter() - start, steps

    mixed = chosen.dtype != torch.float32
    with torch.autocast(chosen.device.type, chosen.dtype, enabled=mixed):
        for _ in range(3):
            call()
        per_call = statistics.median(call() for _ in range(15))
        queue, steps = timed([slice(None)])
        starts = range(0, len(made), batch)
        one_by_one, _ = timed([slice(first, first + batch) for first in starts])
    calls = sum(steps) + len(steps)
    ideal = calls / batch * per_call
    name = arguments.file.name if arguments.file else "generated problems"
    print(f"{arguments.weights} on {name}, {chosen.device}, batch {batch}")
    print(f"{len(made):,} problems, {calls:,} calls; steps: mean {statistics.mean(steps):.1f}, "
          f"median {statistics.median(steps):g}, most {max(steps)}")  # fmt: skip
    print(f"ideal                {ideal:8.2f} s  ({1e3 * per_call:.1f} ms per call)")
    print(f"refilled             {queue:8.2f} s  {queue / ideal:.2f} × the ideal")
    print(f"batch after batch    {one_by_one:8.2f} s  {one_by_one / ideal:.2f} × the ideal")


if __name__ == "__main__":
    main()
