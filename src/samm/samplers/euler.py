"""Discrete flow matching's Euler sampler (eq:euler): a fixed schedule, from t = 0 to t = 1."""

from dataclasses import dataclass, field

import torch

from samm.errors import InputError
from samm.process.race import draw
from samm.process.schedule import Power, Schedule
from samm.samplers.base import Model
from samm.tasks import Answer, Problem


@dataclass(frozen=True)
class EulerOptions:
    """How to run the sampler."""

    steps: int = 64
    schedule: Schedule = field(default_factory=lambda: Power(2.0))
    revisit: bool = False
    """Let unmasked positions jump too (eq:vel_final); the paper's baseline lets only masks jump."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"steps {self.steps}: expected at least 1")


@torch.no_grad()
def euler(
    model: Model,
    problems: Problem,
    generator: torch.Generator,
    options: EulerOptions = EulerOptions(),
) -> Answer:
    """In a step of size h from t a position jumps with probability h κ̇_t/(1-κ_t), to a draw of p.

    Masks that remain after the last step are filled from p.
    """
    state, clue = problems.tokens.clone(), problems.clue
    h = 1 / options.steps
    for step in range(options.steps + 1):
        t = torch.full((len(state),), min(step * h, 1.0), device=state.device)
        prediction = model(state, clue, t)
        probabilities = prediction.probabilities
        drawn = draw(probabilities, generator).to(state.dtype)
        masked = state == prediction.logits.shape[-1]
        if step == options.steps:
            state = torch.where(masked, drawn, state)
            break
        jump = (h * options.schedule.rate(t)).clamp(0, 1)[:, None]
        chance = torch.rand(state.shape, generator=generator, device=state.device)
        may = ~clue if options.revisit else masked
        state = torch.where(may & (chance < jump), drawn, state)
    held = probabilities.gather(-1, state[..., None])[..., 0]
    count = torch.full((len(state),), options.steps, device=state.device)
    stopped = torch.ones_like(count, dtype=torch.bool)
    return Answer(state, stopped, count, torch.where(clue, 1.0, held))
