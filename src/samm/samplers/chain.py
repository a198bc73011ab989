"""The chain of eq:inference: apply the kernel until the network itself says stop.

Every example stops on its own, and a stopped example leaves the batch.
"""

from dataclasses import dataclass

import torch

from samm.errors import InputError
from samm.process.kernel import Kernel, Noise
from samm.samplers.base import Model
from samm.tasks import Answer, Problem


@dataclass(frozen=True)
class ChainOptions:
    """How to run the chain."""

    steps: int = 256
    """Cap on the kernel steps."""
    least_steps: int = 2
    """No stop before this many."""
    token_temperature: float = 1.0
    commit_temperature: float = 1.0
    stop_epsilon: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.least_steps <= self.steps:
            raise InputError(
                f"least_steps {self.least_steps}: expected 0 to the cap of {self.steps} steps"
            )

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.token_temperature, self.commit_temperature, self.stop_epsilon)


@torch.no_grad()
def chain(
    model: Model,
    problems: Problem,
    generator: torch.Generator,
    options: ChainOptions = ChainOptions(),
) -> Answer:
    """Solve problems [B, d]."""
    kernel = options.kernel
    count, length = problems.tokens.shape
    tokens = problems.tokens.clone()
    stopped = torch.zeros(count, dtype=torch.bool, device=tokens.device)
    steps = torch.full((count,), options.steps, device=tokens.device)
    confidence = torch.ones(tokens.shape, device=tokens.device)
    alive = torch.arange(count, device=tokens.device)  # the examples still in the batch
    state, clue = tokens, problems.clue
    for step in range(options.steps + 1):
        prediction = model(state, clue)
        done = kernel.stops(prediction, state)
        if step < options.least_steps:
            done = torch.zeros_like(done)
        leaving = torch.ones_like(done) if step == options.steps else done
        if bool(leaving.any()):
            gone = alive[leaving]
            tokens[gone], stopped[gone] = state[leaving], done[leaving]
            steps[gone] = step
            sure = kernel.confidence(prediction)[leaving]
            confidence[gone] = torch.where(clue[leaving], 1.0, sure)
        if bool(leaving.all()):
            break
        noise = Noise.draw(len(state), length, prediction.logits.shape[-1], generator)
        state = kernel.step(prediction, state, clue, noise)
        if bool(leaving.any()):
            stay = ~leaving
            alive, state, clue = alive[stay], state[stay], clue[stay]
    return Answer(tokens, stopped, steps, confidence)
