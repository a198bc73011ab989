"""Networks with a known posterior, for tests without training."""

import torch
from torch import Tensor

from samm import tasks
from samm.process.prediction import Prediction, progress_target
from samm.tasks import Problem, Task


class Knowing:
    """Knows the answers: right with probability `skill` at every position, whatever the state.

    Confidence `commit`; progress is the truth. Clues tell it which problem it is looking at.
    """

    def __init__(
        self, answers: Tensor, clue: Tensor, vocabulary: int, skill: float, commit: float = 0.8
    ) -> None:
        self.answers, self.clue, self.vocabulary = answers, clue, vocabulary
        self.skill, self.commit = skill, commit
        self.calls: list[int] = []
        """Batch size of every call."""
        self.times: list[Tensor | None] = []

    def __call__(self, tokens: Tensor, clue: Tensor, time: Tensor | None = None) -> Prediction:
        self.calls.append(len(tokens))
        self.times.append(time)
        keys = torch.where(self.clue, self.answers, -1)
        mine = torch.where(clue, tokens, -1)
        which = (mine[:, None] == keys[None]).all(-1).int().argmax(-1)
        answers = self.answers[which]
        rest = (1 - self.skill) / (self.vocabulary - 1)
        p = torch.full((*tokens.shape, self.vocabulary), rest)
        p.scatter_(-1, answers[..., None], self.skill)
        commit = torch.logit(torch.full(tokens.shape, self.commit))
        progress = progress_target(tokens, answers, clue)
        return Prediction(p.log(), commit, torch.logit(progress.clamp(1e-6, 1 - 1e-6)))


class Recorder:
    """Keeps the states that a network is asked about."""

    def __init__(self, model: Knowing) -> None:
        self.model = model
        self.states: list[Tensor] = []

    def __call__(self, tokens: Tensor, clue: Tensor, time: Tensor | None = None) -> Prediction:
        self.states.append(tokens.clone())
        return self.model(tokens, clue, time)


small_task = tasks.get("sudoku", box_rows=2, box_cols=2)
COUNT = 24


def knowing(skill: float = 0.9, commit: float = 0.8, count: int = COUNT) -> Knowing:
    """A network that knows the first problems of the small task."""
    batch, answers = small_problems(small_task, count)
    return Knowing(answers, batch.clue, small_task.vocabulary, skill, commit)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_problems(task: Task, count: int, seed: int = 5) -> tuple[Problem, Tensor]:
    """Problems of a task and their answers."""
    examples = [task.example(seed, index) for index in range(count)]
    return (
        Problem.stack([e.problem for e in examples]),
        torch.stack([e.answer for e in examples]),
    )


class KnowingNetwork(torch.nn.Module):
    """As much of a network as an evaluation asks for."""

    def __init__(self, task: Task, knowing: Knowing) -> None:
        super().__init__()
        self.task, self.knowing = task, knowing
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, tokens: Tensor, clue: Tensor, time: Tensor | None = None) -> Prediction:
        return self.knowing(tokens, clue, time)

    def flops(self) -> int:
        return 1000

    def good_batch(self, device: torch.device) -> int:
        return 8
