"""The reference of the public API, made from its docstrings: docs/reference/python.md."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import headwater

HEAD = """\
# Python API

Generated from the docstrings by `make docs`. [How to use it](../how-to/python.md) has programs.

## What is public

Public is what `headwater` exports: `headwater.connect`, the objects that it leads to, their methods, the values that these return, and the
errors. Until 1.0 a minor release may change it, and the change log says so under its own heading; a patch release does not. Names that
begin with an underscore, and all modules below `headwater`, may change in any release.

Texts of messages are for people and may change; the class of an error does not. Mappings that a method returns "as the command line prints
them" have the fields that the [reference of the command line](cli.md) lists.
"""
_ORDER = (
    "Connection",
    "RealmClient",
    "CatalogClient",
    "BranchClient",
    "TagClient",
    "RefClient",
    "RoleClient",
    "TaskClient",
    "FileTableClient",
    "LogIterator",
)
_ANNOTATION = re.compile(r"""(: |-> )(["'])(.*?)\2""")
"""An annotation in a signature, which is quoted there; defaults that are texts keep their quotes."""
_TYPES = """\
## Types of arguments

- `Key`: a table, view or namespace. A text, names joined by dots (a dot inside a name has a backslash before it), or a tuple of names.
- `Observe`: a function that takes a [TaskProgressInfo](#taskprogressinfo). It is told of each phase of the work when it begins and when its
  count is complete, and ten times a second at most between them; by any thread, one at a time. An error that it raises ends the work.
- `PolicyName`: `snapshots`, `metadata-files` or `file-collection`.
"""
_LINE = re.compile(r"^(\w[\w, ]*?)\s{2,}(\S.*)$")


def reference_page() -> str:
    """The page."""
    parts = [HEAD, "## Functions\n"]
    for function in (headwater.connect, headwater.write_first_manifest):
        parts += _described(function.__name__, function, f"headwater.{function.__name__}")
    parts.append(_TYPES)
    for name in _ORDER:
        parts += _object(getattr(headwater, name))
    parts += ["## Values\n"]
    for name in sorted(name for name in headwater.__all__ if _is_value(getattr(headwater, name))):
        parts += _value(getattr(headwater, name))
    parts += ["## Errors\n", "| error | kind of | meaning |\n|---|---|---|"]
    errors = [getattr(headwater, name) for name in headwater.__all__ if name.endswith("Error")]
    parts += [_error_row(error) for error in errors]
    return "\n".join(parts) + "\n"


def _is_value(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) and kind.__module__.startswith("headwater.api.")


def _object(kind: type) -> Iterator[str]:
    yield f"## {kind.__name__}\n"
    yield _prose(kind) + "\n"
    for name, value in _methods(kind):
        if isinstance(value, property):
            yield f"### {kind.__name__}.{name}\n"
            yield _prose(value.fget) + "\n"
        else:
            yield from _described(name, value, f"{kind.__name__}.{name}")


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    seen: dict[str, Any] = {}
    for owner in kind.__mro__:
        if owner.__module__.startswith("headwater.api"):
            for name, value in vars(owner).items():
                if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    seen.setdefault(name, value)
    inherited = (
        {name for base in kind.__mro__[1:] for name in vars(base)} if kind.__name__ in ("BranchClient", "TagClient") else set()
    )
    yield from ((name, value) for name, value in seen.items() if name not in inherited)


def _described(name: str, function: Any, heading: str) -> Iterator[str]:
    signature = _ANNOTATION.sub(r"\1\3", str(inspect.signature(function))).replace("self, ", "").replace("(self)", "()")
    yield f"### {heading}\n"
    yield f"```text\n{name}{signature}\n```\n"
    yield _prose(function) + "\n"


def _value(kind: type) -> Iterator[str]:
    yield f"### {kind.__name__}\n"
    yield _prose(kind) + "\n"
    yield "| field | type |\n|---|---|"
    yield from (f"| `{field.name}` | `{str(field.type).replace('|', chr(92) + '|')}` |" for field in dataclasses.fields(kind))
    yield ""


def _error_row(error: type) -> str:
    first = (inspect.getdoc(error) or "").replace("\n", " ")
    base = error.__bases__[0].__name__
    return f"| `{error.__name__}` | {'' if base == 'Exception' else f'`{base}`'} | {first} |"


def _prose(of: Any) -> str:
    """A docstring as Markdown: the lines that explain an argument become a list."""
    lines: list[str] = []
    for line in (inspect.getdoc(of) or "").splitlines():
        told = _LINE.match(line)
        if told:
            if lines and lines[-1] and not lines[-1].startswith("- "):
                lines.append("")
            lines.append(f"- `{told[1]}`: {told[2].strip()}")
        elif line.startswith(" ") and lines and lines[-1].startswith("- "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return re.sub(r"``([^`]+)``", r"`\1`", "\n".join(lines))
