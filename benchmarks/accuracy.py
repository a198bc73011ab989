"""Accuracy of a run's newest checkpoint on puzzle files, by one chain, as JSON lines.

python benchmarks/accuracy.py RUN FILE [FILE ...] --steps 256 --limit 1000
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import torch

from samm import runtime
from samm.data import convert
from samm.evaluation.metrics import accuracy
from samm.samplers.chain import ChainOptions, chain
from samm.tasks import Answer, Problem
from samm.training.checkpoint import load_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    chosen = runtime.choose(arguments.device, seed=arguments.seed)
    network = load_network(arguments.run, chosen.device)
    for file in arguments.files:
        data = convert.load(file, network.task, arguments.limit)
        start, answers, generator = time.perf_counter(), [], chosen.generator()
        enabled = chosen.dtype != torch.float32
        with torch.autocast(chosen.device.type, chosen.dtype, enabled=enabled):
            for first in range(0, len(data), arguments.batch):
                tokens = torch.tensor(data.tokens[first : first + arguments.batch]).long()
                clue = tokens != network.task.mask
                problems = Problem(tokens, clue, torch.zeros_like(clue)).to(chosen.device)
                options = ChainOptions(steps=arguments.steps)
                answers.append(chain(network, problems, generator, options).to("cpu"))
        fields = [f.name for f in dataclasses.fields(Answer)]
        joined = Answer(*(torch.cat([getattr(a, f) for a in answers]) for f in fields))
        solutions = torch.tensor(data.answers).long()
        result = dataclasses.asdict(accuracy(joined, solutions))
        seconds = time.perf_counter() - start
        settings = {"file": file.name, "cap": arguments.steps, "seed": arguments.seed}
        print(json.dumps({**settings, **result, "seconds": round(seconds, 1)}), flush=True)


if __name__ == "__main__":
    main()
