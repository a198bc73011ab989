"""The training loop.

Step n is a function of (configuration, weights after step n - 1): batch, states and dropout draw
from streams seeded by (seed, n). So a run that is killed and resumed goes on exactly, and
processes that share a batch compute what one would.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from samm import runtime, tasks
from samm.config import Config
from samm.data.batches import Batches
from samm.data.format import Dataset
from samm.model import Network
from samm.process.objective import CrossEntropy, Objective, Samm, Share, State
from samm.process.path import Hybrid, Uniform
from samm.process.prediction import Prediction
from samm.process.rivals import D3pm, Gidd, Mgdm
from samm.randomness import mix
from samm.recorded import Recorded
from samm.samplers import registry, sample
from samm.training import checkpoint, distributed
from samm.training.log import Speed, peak_flops
from samm.training.optimizer import Optimizer, average, plateau_end
from samm.training.states import States, build_path

BATCH, STATES, DROPOUT, LOOPS = range(4)
"""Which stream of a step's randomness."""


def build_objective(config: Config) -> Objective:
    """The loss that the configuration names."""
    options, path = config.objective, build_path(config)
    if options.kind == "samm":
        names = {field.name for field in fields(Samm)}
        return Samm(**{k: v for k, v in asdict(options).items() if k in names})
    if options.kind == "mgdm":
        return Mgdm(options.focus, options.times, config.path.exponent)
    if options.kind == "gidd":
        assert isinstance(path, Hybrid)
        return Gidd(path, options.dynamic, options.largest)
    if options.kind == "d3pm":
        assert isinstance(path, Uniform)
        return D3pm(path, options.times, options.auxiliary)
    return CrossEntropy(options.all_positions)


class Trainer:
    """A run: network, averaged network, optimiser, data, and the step that moves them on."""

    def __init__(
        self,
        config: Config,
        training: list[Dataset],
        held_out: Dataset,
        world: distributed.World | None = None,
        device: str | None = None,
    ) -> None:
        self.config, self.held_out = config, held_out
        self.world = world or distributed.World()
        chosen = runtime.choose(device, config.training.precision, config.training.seed)
        self.device, self.dtype = chosen.device, chosen.dtype
        self.task = tasks.from_spec(config.task)
        torch.manual_seed(config.training.seed)
        self.network = Network(config.network, self.task).to(self.device)
        self.averaged = Network(config.network, self.task).to(self.device).eval()
        self.averaged.load_state_dict(self.network.state_dict())
        self.averaged.requires_grad_(False)
        self.optimizer = Optimizer(config.optimizer, self.network, config.training.steps or 1)
        self.objective = build_objective(config)
        self.states = States.of(config, self.task.vocabulary)
        weights = list(config.data.weights) or [float(len(d)) for d in training]
        self.batches = Batches(
            training,
            config.training.batch_size,
            mix(config.training.seed, BATCH),
            self.device,
            weights,
            config.data.augment,
        )
        self.rows = self.world.rows(config.training.batch_size)
        self.generator = torch.Generator(self.device)
        self.step = 0
        cuda = self.device.type == "cuda"
        how = config.training.compile or ("graph" if cuda else "off")
        self._loss: Callable[..., tuple[Tensor, Tensor]] = self._loss_of
        self.predict: Callable[..., Prediction] = self._predict_of
        self.gradients: Callable[..., Tensor] = self._gradients_of
        self._compile(how)
        self.recorded = cuda and how == "graph"
        self._record()

    def _compile(self, what: str) -> None:
        if what in ("step", "graph"):
            torch._dynamo.config.cache_size_limit = 64  # one program per number of loops
            self._loss = torch.compile(self._loss_of, dynamic=False)
            self.predict = torch.compile(self._predict_of, dynamic=False)
        elif what == "loop":
            # The hidden state between the parts is no leaf; the compiler looks at it all the same.
            warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")
            for name in ("embed", "loop", "read"):
                part = torch.compile(getattr(self.network, name), dynamic=False)
                setattr(self.network, name, part)

    def _record(self) -> None:
        """Launch prediction, gradients and update as one each; anew for a new optimiser."""
        if not self.recorded:
            return
        if not isinstance(self.predict, Recorded):
            self.predict, self.gradients = Recorded(self.predict), Recorded(self._gradients_of)
        self.optimizer.record()

    @contextlib.contextmanager
    def autocast(self) -> Iterator[None]:
        """bfloat16 activations where they are chosen; nothing in float32."""
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            yield

    def _predict_of(self, tokens: Tensor, clue: Tensor, loops: int | None) -> Prediction:
        with torch.no_grad(), self.autocast():
            prediction: Prediction = self.network(tokens, clue, loops=loops)
        return prediction

    def _loss_of(
        self, tokens: Tensor, answers: Tensor, clue: Tensor, time: Tensor, position: Tensor,
        loops: int | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        state = State(tokens, answers, clue, time)
        with self.autocast():
            conditioned = time if self.config.network.time == "adaln" else None
            prediction = self.network(tokens, clue, time=conditioned, loops=loops)
        share = Share(position, 1 / self.config.training.batch_size)
        terms = torch.stack(list(self.objective.terms(prediction, state, share).values()))
        return terms.sum(), terms.detach()

    def _gradients_of(self, *arguments: Any) -> Tensor:
        """Gradients of the loss, always into the same tensors; returns the terms."""
        loss, terms = self._loss(*arguments)
        parameters = self.optimizer.parameters
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        for parameter, gradient in zip(parameters, found, strict=True):
            if gradient is not None and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        places = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_copy_(places, [g for g in found if g is not None])
        return terms

    def train_step(self) -> Tensor:
        """One batch: draw, take kernel steps, descend. Returns the loss terms (on the device)."""
        terms = self.descend(*self.draw_states())
        self.update()
        return terms

    def draw_states(self) -> tuple[State, Tensor, int | None]:
        """This process's states of the step, what one position counts, and the number of loops."""
        seed, number = self.config.training.seed, self.step
        tokens, answers = (x.long() for x in self.batches.draw(number))
        self.generator.manual_seed(mix(seed, STATES, number))
        loops = self._draw_loops(mix(seed, LOOPS, number))

        def predict(state: Tensor, clue: Tensor) -> Prediction:
            return self.predict(state, clue, loops)

        self.network.train(False)
        state = self.states.draw(
            tokens, answers, predict, self.generator, mix(seed, STATES, number), self.rows
        )
        if self.config.states.target == "closest":
            state = replace(state, answers=self.task.closest(state.tokens, state.answers))
        return state, Share.of(tokens != self.task.mask).position, loops

    def descend(self, state: State, position: Tensor, loops: int | None) -> Tensor:
        """Gradients of the loss on these states, summed over the processes; returns its terms."""
        torch.manual_seed(mix(self.config.training.seed, DROPOUT, self.step, self.world.rank) >> 1)
        self.network.train(self.config.network.dropout > 0)
        terms = self.gradients(state.tokens, state.answers, state.clue, state.time, position, loops)
        self.world.add_gradients(self.network.parameters())
        return terms

    def update(self) -> None:
        """Move the weights, and the averaged ones after them."""
        self.optimizer.step(self.step)
        average(
            self.averaged.parameters(),
            self.network.parameters(),
            self.config.optimizer.ema,
            self.step,
        )
        self.step += 1

    def _draw_loops(self, seed: int) -> int | None:
        fewest, most = self.config.network.fewest_loops, self.config.network.loops
        return None if fewest is None else fewest + seed % (most - fewest + 1)

    @property
    def term_names(self) -> list[str]:
        kind = self.config.objective.kind
        names = {"samm": ["ce", "commit", "stop"], "gidd": ["elbo"], "d3pm": ["bound", "ce"]}
        return names.get(kind, ["ce"])

    @property
    def flops_per_step(self) -> float:
        """Forward and backward count three passes, a kernel step one."""
        passes = 3 + self.states.mean_steps
        return passes * self.network.flops() * self.config.training.batch_size

    def speed(self) -> Speed:
        """What the log has to know."""
        training, peak = self.config.training, peak_flops(self.device)
        return Speed(
            self.step,
            training.steps or 0,
            training.batch_size,
            self.flops_per_step,
            peak and peak * self.world.size,
        )

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """Accuracy of the averaged network on the held-out rows, by its own sampler."""
        tokens = torch.from_numpy(self.held_out.tokens.astype("int64")).to(self.device)
        answers = torch.from_numpy(self.held_out.answers.astype("int64")).to(self.device)
        problems = self.task.problem(tokens)
        generator = torch.Generator(self.device).manual_seed(self.config.training.seed)
        options = {"steps": self.config.training.evaluation_steps}
        sampler = registry.build(self.config, options=options)
        with self.autocast():
            result = sample(self.averaged, problems, generator, sampler)
        right = self.task.right(problems, result.tokens, answers)
        return {
            "accuracy": float(right.float().mean()),
            "stopped": float(result.stopped.float().mean()),
            "mean_steps": float(result.steps.float().mean()),
        }

    # --- saving and resuming

    @property
    def extendable_from(self) -> int | None:
        """The step whose checkpoint a longer run can begin with; always kept."""
        options, steps = self.config.optimizer, self.config.training.steps
        if steps is None or options.schedule != "trapezoid":
            return None
        return plateau_end(options, steps)

    def save(self, run: Path) -> None:
        if self.world.first:
            live = {f"live.{k}": v for k, v in self.network.state_dict().items()}
            moments = {f"optimizer.{k}": v for k, v in self.optimizer.tensors().items()}
            checkpoint.save(
                run,
                self.step,
                self.config,
                self.averaged.state_dict(),
                {**live, **moments},
                self.config.training.keep,
                always=self.extendable_from,
            )
        self.world.wait()

    def restore(self, saved: checkpoint.Checkpoint) -> None:
        """Go on from a checkpoint of the same configuration."""
        self.averaged.load_state_dict(saved.model)
        parts: dict[str, dict[str, Tensor]] = {"live": {}, "optimizer": {}}
        for name, value in saved.train_state.items():
            part, key = name.split(".", 1)
            parts[part][key] = value
        self.network.load_state_dict(parts["live"])
        self.optimizer.restore(parts["optimizer"])
        self._record()
        self.step = saved.step

    def steps_for(self, minutes: float) -> int:
        """How many steps fit, by a brief measurement that leaves no trace."""
        before = {k: v.clone() for k, v in self.network.state_dict().items()}
        self._steps(3)  # compiles
        start, count = time.perf_counter(), 0
        while count < 5 or (time.perf_counter() - start < 5 and count < 100):
            self._steps(5)
            count += 5
        seconds = torch.tensor([(time.perf_counter() - start) / count], device=self.device)
        per_step = float(self.world.add(seconds)) / self.world.size
        self.network.load_state_dict(before)
        self.averaged.load_state_dict(before)
        self.step = 0
        return max(1, int(minutes * 60 / per_step))

    def _steps(self, count: int) -> None:
        """Train, and wait until the device has done it."""
        for _ in range(count):
            self.train_step()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def set_steps(self, steps: int) -> None:
        """Fix the length of the run, with a fresh optimiser."""
        self.config = replace(self.config, training=replace(self.config.training, steps=steps))
        self.optimizer = Optimizer(self.config.optimizer, self.network, steps)
        self._record()
