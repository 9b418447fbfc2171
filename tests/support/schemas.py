"""Just enough of JSON Schema to hold our documents to docs/schema; a word it does not know is an error."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_SILENT = {"$schema", "$id", "title", "description", "examples"}


def faults(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """The faults of a document; empty when it keeps to its schema."""
    found: list[str] = []
    for word, rule in schema.items():
        if word not in _SILENT:
            found += _RULES[word](value, rule, schema, where)
    return found


def _type(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    names = [rule] if isinstance(rule, str) else rule
    fits = any(
        isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
        for name in names
    )
    return [] if fits else [f"{where}: {value!r} is no {' or '.join(names)}"]


def _properties(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    known = value if isinstance(value, dict) else {}
    return [
        fault for key in rule if key in known for fault in faults(known[key], rule[key], f"{where}.{key}")
    ]


def _required(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    known = value if isinstance(value, dict) else rule
    return [f"{where}: {key} is missing" for key in rule if key not in known]


def _additional(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    known = value if isinstance(value, dict) else {}
    extra = sorted(set(known) - set(schema.get("properties", {}))) if rule is False else []
    return [f"{where}: {key} is not in the schema" for key in extra]


def _items(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    listed = value if isinstance(value, list) else []
    return [fault for at, item in enumerate(listed) for fault in faults(item, rule, f"{where}[{at}]")]


def _one_of(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    tries = [faults(value, choice, where) for choice in rule]
    fitting = sum(not found for found in tries)
    return [] if fitting == 1 else [f"{where}: fits {fitting} of {len(rule)}: {min(tries, key=len)[:1]}"]


def _const(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    return [] if value == rule else [f"{where}: {value!r} is not {rule!r}"]


def _enum(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    return [] if value in rule else [f"{where}: {value!r} is none of {rule}"]


def _minimum(value: Any, rule: Any, schema: dict[str, Any], where: str) -> list[str]:
    too_low = isinstance(value, (int, float)) and value < rule
    return [f"{where}: {value} is below {rule}"] if too_low else []


_RULES = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "oneOf": _one_of,
    "const": _const,
    "enum": _enum,
    "minimum": _minimum,
}
