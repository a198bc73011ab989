"""Do the two heads mean what they say? Counts along the way, for every state of every chain.

The commit head is held against its closed form c*(q), the optimum of L_commit for the wrong mass
q = 1 - p(x_1 | z), and against what it should say without knowing x_1, by its network's own p; the
stop against τ*, the share of free positions that is right.
"""

from typing import Any

import torch
from torch import Tensor

from samm.process.objective import Samm
from samm.process.prediction import progress_target
from samm.samplers.engine import Frame

Q_EDGES = (0, 0.001, 0.003, 0.01, 0.03, *(i / 20 for i in range(1, 20)), 0.97, 0.99, 1)
C_EDGES = (0, *(i / 20 for i in range(6, 20)), 0.97, 0.99, 1)
TAU_EDGES = (*(i / 20 for i in range(20)), 0.97, 0.98, 0.99, 0.995, 0.999, 1)


class _Bins:
    """Sums of several quantities over the bins of one."""

    def __init__(self, edges: tuple[float, ...], names: tuple[str, ...]) -> None:
        self.edges, self.names = torch.tensor(edges), names
        self.sums = torch.zeros(len(edges) - 1, len(names) + 1, dtype=torch.float64)

    def add(self, key: Tensor, *values: Tensor) -> None:
        where = torch.bucketize(key, self.edges[1:-1].to(key), right=True)
        columns = torch.stack([torch.ones_like(key), *values], -1)
        self.sums.index_add_(0, where.cpu(), columns.cpu().double())  # not every GPU has doubles

    def table(self) -> dict[str, Any]:
        """Counts, and the mean of every quantity per bin (None where the bin is empty)."""
        counts, *sums = self.sums.T.tolist()
        means = {
            name: [total / n if n else None for total, n in zip(column, counts, strict=True)]
            for name, column in zip(self.names, sums, strict=True)
        }
        return {"edges": self.edges.tolist(), "count": [int(n) for n in counts], **means}


class Calibration:
    """Give it to `sample` as `watch`, with the answers [n, d] and the number of chains of each."""

    def __init__(self, answers: Tensor, chains: int, objective: Samm) -> None:
        self.answers, self.chains, self.objective = answers, chains, objective
        self.commit = _Bins(Q_EDGES, ("wrong_mass", "confidence", "optimum"))
        self.expected = _Bins(C_EDGES, ("optimum", "confidence", "right"))
        self.stop = _Bins(TAU_EDGES, ("progress", "target", "right"))

    def __call__(self, frame: Frame) -> None:
        view, seen = frame.view, frame.prediction
        answers = self.answers[frame.index // self.chains]
        p, c, truth = (x[~view.clue] for x in (seen.probabilities, seen.confidence, answers))
        right = p.gather(-1, truth[..., None])[..., 0]
        q = (1 - right).clamp(0, 1)
        self.commit.add(q, q, c, self.objective.optimum(q))
        best = self.objective.expected_optimum((1 - p).clamp(0, 1), p)
        self.expected.add(best, best, c, right)
        target = progress_target(view.state, answers, view.clue)
        self.stop.add(seen.progress, seen.progress, target, (target == 1).float())

    def table(self) -> dict[str, Any]:
        return {
            "commit": self.commit.table(),
            "expected": self.expected.table(),
            "stop": self.stop.table(),
        }
