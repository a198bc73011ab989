"""Self-Aware Markov Models for discrete reasoning: networks that draft, doubt and correct."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from samm.errors import InputError
    from samm.solver import Solution, Solver, load
    from samm.tasks import Answer, Problem, Task

__all__ = [
    "Answer",
    "InputError",
    "Problem",
    "Solution",
    "Solver",
    "Task",
    "__version__",
    "load",
]

_HOMES = {
    "Answer": "samm.tasks",
    "InputError": "samm.errors",
    "Problem": "samm.tasks",
    "Solution": "samm.solver",
    "Solver": "samm.solver",
    "Task": "samm.tasks",
    "load": "samm.solver",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing samm itself stays instant."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'samm' has no attribute '{name}'")
