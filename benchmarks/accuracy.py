"""Accuracy of a run's newest checkpoint on puzzle files, by one chain, as JSON lines.

python benchmarks/accuracy.py RUN FILE [FILE ...] --steps 256 --limit 1000
"""

import argparse
import dataclasses
import json
import time
from itertools import product
from pathlib import Path

import torch

from samm import runtime
from samm.data import convert
from samm.evaluation.metrics import accuracy
from samm.samplers.chain import ChainOptions, chain
from samm.tasks import Answer
from samm.training.checkpoint import load_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--steps", type=int, nargs="+", default=[256], help="caps of the chain")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    chosen = runtime.choose(arguments.device, seed=arguments.seed)
    network = load_network(arguments.run, chosen.device)
    for file, cap in product(arguments.files, arguments.steps):
        data = convert.load(file, network.task, arguments.limit)
        problems = network.task.problem(torch.tensor(data.tokens).long())
        start, parts, generator = time.perf_counter(), [], chosen.generator()
        with torch.autocast(
            chosen.device.type, chosen.dtype, enabled=chosen.dtype != torch.float32
        ):
            for first in range(0, len(data), arguments.batch):
                some = problems[first : first + arguments.batch].to(chosen.device)
                parts.append(chain(network, some, generator, ChainOptions(cap)).to("cpu"))
        answer = Answer.join(parts)
        right = network.task.right(problems, answer.tokens, torch.tensor(data.answers).long())
        result = {
            "file": file.name,
            "cap": cap,
            "seed": arguments.seed,
            **dataclasses.asdict(accuracy(answer, right)),
            "seconds": round(time.perf_counter() - start, 1),
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
