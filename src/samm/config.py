"""Configuration: frozen dataclasses, read from TOML. Unknown keys are errors that name the key."""

import dataclasses
import json
import math
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from samm import schema
from samm.errors import InputError


@dataclass(frozen=True)
class NetworkConfig:
    """The trunk and its heads."""

    width: int = 256
    """Features per position."""
    heads: int = 4
    """Attention heads."""
    layers: int = 2
    """Blocks of attention and MLP."""
    loops: int = 8
    """The layers run this often, with shared weights; each time the state is embedded again."""
    fewest_loops: int | None = None
    """In training, draw the number of loops from here to `loops` for every batch."""
    mlp_ratio: int = 4
    """Hidden features of the MLP per feature of the trunk."""
    dropout: float = 0.0
    """On the output of attention and MLP, and on the attention weights."""
    rotary: str = "axes"
    """axes: the task's own axes; line: the index in the sequence alone."""
    rotary_base: float = 10.0
    """The pairs of a head turn by coordinate · base^(-k/n), k = 0 .. n - 1."""
    groups: bool = True
    """Learned embeddings of the task's groups (row, column, box)."""
    positions: bool = True
    """A learned embedding per position."""
    time: str = "none"
    """none, additive (share of committed cells, as the paper's adaptive model), or adaln (DiT)."""
    head: str = "mlp"
    """mlp: small heads on the trunk; streams: one extra stream per head, as the paper."""
    head_width: int | None = None
    """Hidden features of the commit and stop heads; default half of `width`."""
    head_layers: int = 2
    """Linear maps of the commit and stop heads."""
    causal: bool = False
    """Every position sees the tokens before it alone: an autoregressive model, to compare with."""
    tied: bool = False
    """The token head reads the table that embeds tokens: for large vocabularies."""
    logit_clip: float | None = None
    """Clamp token logits to ± this."""

    def __post_init__(self) -> None:
        schema.choice(self, "rotary", "axes", "line")
        schema.choice(self, "time", "none", "additive", "adaln")
        schema.choice(self, "head", "mlp", "streams")
        schema.positive(self, "width", "heads", "layers", "loops", "mlp_ratio", "head_layers")
        if self.width % (2 * self.heads):
            raise InputError(
                f"network.width = {self.width} is not a multiple of 2 · heads = {2 * self.heads}"
            )
        if self.fewest_loops is not None and not 1 <= self.fewest_loops <= self.loops:
            raise InputError(
                f"network.fewest_loops = {self.fewest_loops}: expected 1 to loops = {self.loops}"
            )
        schema.within(self, 0, 0.999, "dropout")
        schema.within(self, 1.0, math.inf, "rotary_base")


@dataclass(frozen=True)
class PathConfig:
    """The path that training states start from."""

    kind: str = "masking"
    """masking (eq:masking path), hybrid (GIDD), uniform (D3PM), or answer (autoregressive)."""
    exponent: float = 1.0
    """κ_t = t^a of the masking and uniform paths."""
    uniform_share: float = 0.1
    """p_u of the hybrid path."""
    time_exponent: float = 1.0
    """t = u^b with u ~ U[0, 1]: above 1 favours early, emptier states."""
    blank_share: float = 0.5
    """Share of examples that start blank, at t = 0, where the chain starts too."""

    def __post_init__(self) -> None:
        schema.choice(self, "kind", "masking", "hybrid", "uniform", "answer")
        schema.within(self, 0, 1, "blank_share")
        schema.within(self, 1e-6, 1 - 1e-6, "uniform_share")
        schema.positive(self, "exponent", "time_exponent")


@dataclass(frozen=True)
class StatesConfig:
    """On-policy states: kernel steps of the live network, without gradient."""

    steps: tuple[float, ...] = (0.0, 1.0)
    """Weights of taking 0, 1, 2, ... kernel steps; one number is drawn per batch."""
    probability: float = 1.0
    """Share of examples that take them; the others keep the state of the path."""
    target: str = "given"
    """given: the answer that the data holds; closest: of all right ones that which the state agrees
    with most, for the loss and for τ* (where a task can tell)."""
    always_commit: bool = False
    """Without the commit head: every kernel step writes tokens everywhere (an ablation)."""

    def __post_init__(self) -> None:
        if not self.steps or min(self.steps) < 0 or sum(self.steps) <= 0:
            raise InputError(f"states.steps = {list(self.steps)}: expected weights ≥ 0, not all 0")
        schema.within(self, 0, 1, "probability")
        schema.choice(self, "target", "given", "closest")


@dataclass(frozen=True)
class ObjectiveConfig:
    """The loss; process/objective.py has the formulas of ours and DFM's, rivals.py the others."""

    kind: str = "samm"
    """samm, cross_entropy (DFM), gidd, mgdm, or d3pm."""
    commit_weight: float = 0.1
    """λ_c"""
    stop_weight: float = 0.5
    """λ_s"""
    epsilon: float = 0.05
    """ε of the weight w(c) = (1 - c + ε)^-k."""
    exponent: float = 1.0
    """k of the weight w(c)."""
    stop_norm: str = "bce"
    """mse (the paper's appendix), l1 (eq:loss), or bce (cross-entropy: same optimum, sooner)."""
    weight_attached: bool = False
    """Let gradients flow through w(c)."""
    coupled: bool = False
    """Let gradients of L_commit flow into p (eq:loss as printed)."""
    all_positions: bool = False
    """Cross-entropy at clues too."""
    sums: bool = False
    """Sums over the positions of an example, as the paper, instead of batch-wide means."""
    calibrated: bool = False
    """Instead of L_commit: cross-entropy of c on "the token drawn here is right"."""
    dynamic: bool = True
    """gidd: dynamic instead of clipped weights."""
    largest: float = 1.0
    """gidd: the largest weight."""
    focus: float = 1.0
    """mgdm: the exponent γ of 1 - p(x_1 | z) in the weight of a token."""
    times: int = 20
    """mgdm, d3pm: the number T of time steps that the loss is written for."""
    auxiliary: float = 0.01
    """d3pm: λ of the cross-entropy."""

    def __post_init__(self) -> None:
        schema.choice(self, "kind", "samm", "cross_entropy", "gidd", "mgdm", "d3pm")
        schema.choice(self, "stop_norm", "mse", "l1", "bce")
        schema.within(
            self, 0, 1e6, "commit_weight", "stop_weight", "exponent", "focus", "auxiliary"
        )
        schema.positive(self, "epsilon", "largest", "times")


@dataclass(frozen=True)
class OptimizerConfig:
    """Who moves the weights."""

    kind: str = "muon"
    """muon (hidden matrices by Muon, the rest by AdamW), adamw, or adam."""
    muon_rate: float = 0.02
    """Learning rate of Muon, in torch's own scaling."""
    muon_decay: float = 0.02
    """Weight decay of Muon."""
    rate: float = 1e-3
    """Learning rate of AdamW."""
    betas: tuple[float, ...] = (0.9, 0.95)
    """Of AdamW."""
    decay: float = 0.0
    """Weight decay of AdamW."""
    warmup: int = 300
    """Steps of linear warm-up."""
    schedule: str = "trapezoid"
    """cosine: down from the warm-up to the end; trapezoid: constant, then linearly down. A run of
    the second kind can be made longer later (`--extend`)."""
    cooldown: float = 0.3
    """trapezoid: share of the run in which the rate falls."""
    final: float = 0.02
    """The rate falls to this share; 1 keeps it constant."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    ema: float = 0.999
    """Decay of the averaged weights that are evaluated and released; 0: they are the live ones."""

    def __post_init__(self) -> None:
        schema.choice(self, "kind", "muon", "adamw", "adam")
        schema.choice(self, "schedule", "cosine", "trapezoid")
        schema.positive(self, "rate", "muon_rate", "clip")
        if len(self.betas) != 2:
            raise InputError(f"optimizer.betas = {list(self.betas)}: expected two numbers")
        schema.within(self, 0, 1, "cooldown", "final", "ema")
        schema.within(self, 0, 1e9, "warmup", "decay", "muon_decay")


@dataclass(frozen=True)
class DataConfig:
    """What is trained on."""

    files: tuple[str, ...] = ()
    """Any readable files; none: the task's own generator."""
    weights: tuple[float, ...] = ()
    """Share of each file in a batch; default: by its number of rows."""
    generated: int = 20_000
    """Rows to generate where no files are given."""
    held_out: int = 500
    """Rows kept from training for the accuracy that training shows."""
    held_out_files: tuple[str, ...] = ()
    """Measure it on these files instead, with all of `files` trained on (see `samm data split`);
    the first `held_out` rows, shared out evenly."""
    augment: bool = True
    """Map every drawn problem by a random symmetry of the task."""

    def __post_init__(self) -> None:
        schema.positive(self, "generated", "held_out")
        if self.weights and len(self.weights) != len(self.files):
            raise InputError(
                f"data.weights has {len(self.weights)} numbers for {len(self.files)} data.files"
            )


@dataclass(frozen=True)
class TrainingConfig:
    """How long, how much at once, and what is written on the way."""

    batch_size: int = 512
    """Problems per step, over all processes together."""
    steps: int | None = None
    """Length of the run; `--minutes` fills it in."""
    seed: int = 0
    """Everything in a run follows from it."""
    compile: str | None = None
    """graph: torch.compile of the step, recorded as CUDA graphs (default on a CUDA GPU); step: not
    recorded; loop: torch.compile of one loop, done in seconds and for any number of loops; off."""
    precision: str | None = None
    """bfloat16 or float32 activations; default: what the device is best at."""
    log_every: int = 50
    """Steps between two lines of the log."""
    evaluate_every: int = 1000
    """Steps between two looks at the held-out problems."""
    checkpoint_every: int = 1000
    """Steps between two checkpoints."""
    keep: int = 2
    """Checkpoints kept."""
    part_megabytes: int = 16
    """Checkpoints are split into files no larger than this."""
    evaluation_steps: int = 64
    """Step cap of the chain (or number of Euler steps) in the accuracy that training shows."""

    def __post_init__(self) -> None:
        schema.positive(
            self, "batch_size", "log_every", "evaluate_every", "checkpoint_every", "keep",
            "part_megabytes", "evaluation_steps",
        )  # fmt: skip
        schema.within(self, 0, 2**62, "seed")
        if self.steps is not None:
            schema.positive(self, "steps")
        if self.compile is not None:
            schema.choice(self, "compile", "graph", "step", "loop", "off")
        if self.precision is not None:
            schema.choice(self, "precision", "bfloat16", "float32")


@dataclass(frozen=True)
class Config:
    """One experiment."""

    task: dict[str, Any] = field(default_factory=lambda: {"name": "sudoku"})
    """Name and options of the task."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The network T_θ."""
    path: PathConfig = field(default_factory=PathConfig)
    """Where states start."""
    states: StatesConfig = field(default_factory=StatesConfig)
    """How they go on."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    """What is minimised."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """By what."""
    data: DataConfig = field(default_factory=DataConfig)
    """On what."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """For how long."""

    def __post_init__(self) -> None:
        path = {"gidd": "hybrid", "d3pm": "uniform"}.get(self.objective.kind, "masking")
        if self.network.causal:
            path = "answer"
            if self.objective.kind != "cross_entropy":
                raise InputError(
                    "network.causal = true contradicts objective.kind = "
                    f"'{self.objective.kind}': an autoregressive model has cross_entropy"
                )
        if self.path.kind != path:
            raise InputError(
                f"objective.kind = '{self.objective.kind}' contradicts "
                f"path.kind = '{self.path.kind}': it belongs to the {path} path"
            )
        if self.objective.kind != "samm" and any(self.states.steps[1:]):
            raise InputError(
                f"states.steps contradicts objective.kind = '{self.objective.kind}': "
                "only samm has a commit head to take kernel steps with; set states.steps = [1]"
            )

    @classmethod
    def read(cls, path: str | Path, overrides: Sequence[str] = ()) -> Self:
        """A TOML file, with `section.key=value` overrides."""
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}") from None
        for override in overrides:
            schema.override(table, override)
        try:
            return cls.build(table)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def build(cls, table: Mapping[str, Any]) -> Self:
        return typing.cast("Self", schema.build(cls, table, ""))

    def table(self) -> dict[str, Any]:
        """What `build` takes, ready for JSON."""
        table: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return table
