"""From tables to frozen dataclasses: names, types and ranges are checked, mistakes named by key."""

import dataclasses
import math
import tomllib
import types
import typing
from collections.abc import Mapping
from typing import Any

from samm.errors import InputError


def override(
    table: dict[str, Any], text: str, flag: str = "--set", form: str = "section.key=value"
) -> None:
    """Set one key of nested tables from `section.key=value`: a value of TOML, or plain text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"{flag} {text}: expected {form}")
    *sections, key = name.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise InputError(f"{flag} {text}: {section} is no section")
    try:
        table[key] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[key] = value.strip()


def build(kind: Any, table: Any, place: str) -> Any:
    """A dataclass from a table, checking names and types."""
    if not isinstance(table, Mapping):
        raise InputError(f"{place.rstrip('.')} = {table!r}: expected a section")
    hints, names = typing.get_type_hints(kind), [f.name for f in dataclasses.fields(kind)]
    unknown = sorted(set(table) - set(names))
    if unknown:
        raise InputError(f"unknown key '{place}{unknown[0]}'; known: {', '.join(names)}")
    return kind(**{key: _value(hints[key], value, place + key) for key, value in table.items()})


def _value(hint: Any, value: Any, place: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return build(hint, value, place + ".")
    if isinstance(hint, types.UnionType):
        if value is None:
            return None
        hint = next(option for option in typing.get_args(hint) if option is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise InputError(f"{place} = {value!r}: expected a list")
        return tuple(_value(typing.get_args(hint)[0], item, place) for item in value)
    if typing.get_origin(hint) is dict:
        if not isinstance(value, Mapping):
            raise InputError(f"{place} = {value!r}: expected a section")
        return dict(value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise InputError(f"{place} = {value!r}: expected {hint.__name__}")
    return value


def choice(config: Any, name: str, *choices: str) -> None:
    """Refuse a field that is none of these."""
    value = getattr(config, name)
    if value not in choices:
        section = type(config).__name__.removesuffix("Config").lower()
        raise InputError(f"{section}.{name} = {value!r}: expected {' or '.join(choices)}")


def positive(config: Any, *names: str) -> None:
    """Refuse fields that are not above 0 (or not finite)."""
    for name in names:
        if not 0 < getattr(config, name) < math.inf:
            section = type(config).__name__.removesuffix("Config").lower()
            raise InputError(f"{section}.{name} = {getattr(config, name)}: expected more than 0")


def within(config: Any, low: float, high: float, *names: str) -> None:
    """Refuse fields outside [low, high]."""
    for name in names:
        value = getattr(config, name)
        if not low <= value <= high:
            section = type(config).__name__.removesuffix("Config").lower()
            raise InputError(f"{section}.{name} = {value}: expected {low:g} to {high:g}")
