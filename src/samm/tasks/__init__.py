"""Tasks by name: the package's own, and those that other packages register.

A package offers a task through the entry-point group `samm.tasks` (`name = "module:Class"`); a
program can also call `register` itself.
"""

import dataclasses
import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from samm.errors import InputError
from samm.tasks.base import (
    Answer,
    Batch,
    CannotVerify,
    Coordinates,
    Example,
    Problem,
    Symbols,
    Task,
    Tokenizer,
)

__all__ = [
    "Answer",
    "Batch",
    "CannotVerify",
    "Coordinates",
    "Example",
    "Problem",
    "Symbols",
    "Task",
    "Tokenizer",
    "from_spec",
    "get",
    "names",
    "parse",
    "register",
]

_OWN = {
    "countdown": "samm.tasks.countdown:Countdown",
    "sudoku": "samm.tasks.sudoku:Sudoku",
}
_registered: dict[str, type[Task]] = {}


def register(task: type[Task]) -> type[Task]:
    """Make a task known by its name; usable as a class decorator."""
    taken = _registered.get(task.name)
    if taken is not None and taken is not task:
        raise ValueError(f"task name '{task.name}' is taken by {taken.__module__}.{taken.__name__}")
    _registered[task.name] = task
    return task


def _offers() -> list[EntryPoint]:
    own = [EntryPoint(name, value, "samm.tasks") for name, value in _OWN.items()]
    return [*own, *entry_points(group="samm.tasks")]


def names() -> list[str]:
    """All known task names, sorted."""
    return sorted({*_registered, *(offer.name for offer in _offers())})


def get(name: str, /, **options: Any) -> Task:
    """The task called `name` with these options."""
    if name not in _registered:
        found = [offer for offer in _offers() if offer.name == name]
        if not found:
            raise InputError(f"task '{name}' is unknown; known tasks: {', '.join(names())}")
        task = found[0].load()
        if not (isinstance(task, type) and issubclass(task, Task) and task.name == name):
            raise TypeError(f"entry point {found[0].value} is not a Task named '{name}'")
        register(task)
    known = [f.name for f in dataclasses.fields(_registered[name])]
    for option in options:
        if option not in known:
            offered = ", ".join(known) or "none"
            raise InputError(f"task '{name}' has no option '{option}'; its options: {offered}")
    return _registered[name](**options)


def from_spec(spec: Mapping[str, Any]) -> Task:
    """Rebuild a task from what `Task.spec` gave."""
    options = dict(spec)
    return get(options.pop("name"), **options)


def parse(text: str) -> Task:
    """A task from the command line: `sudoku`, or `sudoku:box_rows=4,box_cols=4`."""
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            raise InputError(f"task '{text}': expected option=value, got '{part}'")
        try:
            options[key] = json.loads(value)
        except json.JSONDecodeError:
            options[key] = value
    return get(name, **options)
