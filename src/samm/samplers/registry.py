"""Samplers by name, and which of them suits a network by how it was trained."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from samm import schema, tasks
from samm.config import Config
from samm.errors import InputError
from samm.samplers.ancestral import D3pm, Gidd
from samm.samplers.base import Sampler, Scheduled
from samm.samplers.chain import Chain
from samm.samplers.euler import Euler
from samm.samplers.left_to_right import LeftToRight
from samm.samplers.remdm import Remdm
from samm.samplers.restart import Restart
from samm.samplers.top_k import Margin, Remasking, TopK
from samm.tasks import Task

SAMPLERS: dict[str, type[Sampler]] = {
    kind.name: kind
    for kind in (
        Chain, Restart, Euler, TopK, Margin, Remdm, Remasking, Gidd, D3pm, LeftToRight
    )
}  # fmt: skip

_MASKED = ("euler", "top_k", "margin", "remdm", "mgdm")
_SUITABLE = {
    "samm": ("chain", "restart", *_MASKED),
    "cross_entropy": _MASKED,
    "mgdm": ("mgdm", "top_k", "margin", "euler", "remdm"),
    "gidd": ("gidd",),
    "d3pm": ("d3pm",),
}


def suitable(config: Config) -> tuple[str, ...]:
    """The samplers for a network trained by this configuration, its own one first."""
    return ("left_to_right",) if config.network.causal else _SUITABLE[config.objective.kind]


def _verifying(config: Config) -> Task:
    task = tasks.from_spec(config.task)
    if not task.can_verify:
        raise InputError(f"sampler 'restart': task '{task.name}' cannot verify answers")
    return task


def build(
    config: Config, name: str | None = None, options: Mapping[str, Any] | None = None
) -> Sampler:
    """A sampler for a network; the path's options are those it was trained with unless given."""
    names = suitable(config)
    name = names[0] if name is None else name
    if name not in SAMPLERS:
        raise InputError(f"sampler '{name}' is unknown; known: {', '.join(SAMPLERS)}")
    if name not in names:
        raise InputError(
            f"sampler '{name}' does not suit a network trained with objective.kind = "
            f"'{config.objective.kind}'; expected {' or '.join(names)}"
        )
    kind = SAMPLERS[name]
    known = {field.name for field in dataclasses.fields(kind)}
    table: dict[str, Any] = {}
    if issubclass(kind, Scheduled):
        table["exponent"] = config.path.exponent
    if "always_commit" in known:
        table["always_commit"] = config.states.always_commit
    if "uniform_share" in known:
        table["uniform_share"] = config.path.uniform_share
    sampler: Sampler = schema.build(kind, {**table, **(options or {})}, f"{name}.")
    if isinstance(sampler, Restart):
        sampler = dataclasses.replace(sampler, task=_verifying(config))
    if getattr(sampler, "clock", "schedule") == "progress" and config.objective.kind != "samm":
        raise InputError(
            f"{name}.clock = 'progress': a network trained with objective.kind = "
            f"'{config.objective.kind}' does not know its progress"
        )
    return sampler
