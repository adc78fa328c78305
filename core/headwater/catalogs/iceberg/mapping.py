"""From the path of a table below an import location to its key in the catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from headwater.errors import RefusedError

__all__ = ["Pattern", "pattern_of"]

_TABLE = "table"
_IN_A_FOLDER = 3
_OVER_FOLDERS = 2
"""What is left open is tried in every way that there is, and these multiply: beyond, one long path could take for ever."""
_TOKEN = re.compile(
    r"\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<deep>/?)\}|(?P<folders>(?<![^/])\*\*(?:/|$))|(?P<part>\*)|(?P<text>[^{}*]+)"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of paths, made by ``pattern_of``.

    regex         of the whole path, with a group for each element
    deep          for each group, whether it holds several folders
    """

    text: str
    regex: re.Pattern[str]
    deep: tuple[bool, ...]

    def key(self, folders: Sequence[str]) -> tuple[str, ...] | None:
        """The elements that a path has, or None when it does not fit. Where it fits in several ways the first placeholders are short."""
        found = self.regex.fullmatch("/".join(folders))
        if found is None:
            return None
        parts = [part.split("/") if deep else [part] for part, deep in zip(found.groups(), self.deep, strict=True)]
        return tuple(element for elements in parts for element in elements)


@lru_cache(maxsize=64)
def pattern_of(text: str) -> Pattern:
    """Read a pattern such as ``{namespace}.db/{table}``.

    ``{name}``    a folder or a part of one: an element of the key, in the order of the pattern; the last one is ``{table}``
    ``{name/}``   one folder or more, each an element
    ``*``         a folder, or a part of one, that is left out of the key
    ``**``        as a whole folder of the pattern: any number of folders that are left out of the key

    Elements stay as they are: nothing is decoded, nor made lower case.

    raises        RefusedError, with the place, for what is no such pattern
    """
    regex, names, deep, at = "", [], [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise RefusedError(f"path {text!r} has a stray {text[at]!r} at place {at + 1}: write placeholders as {{name}}")
        at = token.end()
        if token["name"]:
            names.append(token["name"])
            deep.append(bool(token["deep"]))
            regex += "([^/]+(?:/[^/]+)*?)" if token["deep"] else "([^/]+?)"
        elif token["folders"]:
            regex += "(?:[^/]+/)*" if token["folders"].endswith("/") else "(?:[^/]+(?:/[^/]+)*)?"
        else:
            regex += "[^/]*?" if token["part"] else re.escape(token["text"])
    _check(text, names, deep)
    return Pattern(text, re.compile(regex), tuple(deep))


def _check(text: str, names: Sequence[str], deep: Sequence[bool]) -> None:
    if names.count(_TABLE) != 1 or names[-1] != _TABLE or deep[-1]:
        raise RefusedError(f"path {text!r} needs {{table}} once, as its last placeholder, such as {{namespace}}.db/{{table}}")
    if len(set(names)) != len(names):
        raise RefusedError(f"path {text!r} uses a placeholder twice: give each element a name of its own")
    if text.startswith("/") or text.endswith("/") or "//" in text:
        raise RefusedError(f"path {text!r} starts or ends with a slash, or doubles one: it is matched below the location")
    folders = text.replace("/}", "}").split("/")
    if any(folder.count("{") + folder.count("*") > _IN_A_FOLDER for folder in folders if folder != "**"):
        raise RefusedError(f"path {text!r} has many placeholders and * in one folder: at most {_IN_A_FOLDER} are possible")
    if folders.count("**") + sum(deep) > _OVER_FOLDERS:
        raise RefusedError(f"path {text!r} has many ** and {{name/}}: at most {_OVER_FOLDERS} are possible")
