"""Contexts: named sets of what commands may leave out, in one file of the user; and what a call takes from them.

What a call leaves out comes from the environment, else from the context, else it is the built-in default. A catalog belongs to its realm,
and a reference to its catalog: where the environment names another realm, the context's catalog does not count, and so on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from headwater.console import Output
from headwater.durability import make_folder
from headwater.errors import NotFoundError, RefusedError
from headwater.settings import variable_of
from headwater.typed_values import convert

OUTPUTS: tuple[str, ...] = get_args(Output)
_PLACE = ("realm", "catalog", "ref")


def _text(purpose: str, shown: str) -> Any:
    return field(default="", metadata={"purpose": purpose, "unit": "text", "shown": shown})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """The settings that the command line alone reads. Each is an environment variable, named as those of ``Settings``."""

    context: str = _text("name of the context to use", "the one of `headwater context use`")
    context_file: str = _text("file of the contexts", "`headwater/contexts.yaml` in `XDG_CONFIG_HOME`")
    realm: str = _text("the realm of addresses that leave it out", "the context's")
    catalog: str = _text("the catalog of addresses that leave it out", "the context's")
    ref: str = _text("the branch, tag or commit of addresses that leave the catalog out", "the context's")
    author: str = _text("the author of the commits that it makes", "the context's, or the user")
    output: str = _text("how results are printed where `-o` says nothing", "the context's, or `table`")

    @classmethod
    def variables(cls) -> list[str]:
        """The environment variables of these settings."""
        return [variable_of(each.name) for each in fields(cls)]


@dataclass(frozen=True, slots=True)
class NamedContext:
    """What commands may leave out. An empty text says nothing."""

    name: str
    store: str = ""
    realm: str = ""
    catalog: str = ""
    ref: str = ""
    author: str = ""
    output: str = ""

    @classmethod
    def names(cls) -> list[str]:
        """The names of what a context can say."""
        return [each.name for each in fields(cls) if each.name != "name"]

    def said(self) -> dict[str, str]:
        """What it says."""
        return {name: value for name in self.names() if (value := getattr(self, name))}


class _ContextDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written; what is left empty is an empty text."""

    current: str = ""
    contexts: dict[str, dict[str, str] | Literal[""]] | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """The contexts of a user, and which of them is in use; empty: none.

    Only its owner can read the file: a store's URL may hold a login.
    """

    path: Path
    current: str = ""
    contexts: Mapping[str, NamedContext] = field(default_factory=dict)

    @classmethod
    def read_file(cls, path: Path) -> ContextFile:
        """The file's contexts; none where there is no file.

        raises        RefusedError for a file that cannot be read or holds something else
        """
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls(path)
        except (OSError, UnicodeDecodeError) as fault:
            raise RefusedError(f"the contexts in {path} cannot be read: {fault}") from fault
        return cls._parsed(path, text)

    @classmethod
    def _parsed(cls, path: Path, text: str) -> ContextFile:
        import yaml  # most calls have no context, and need no YAML

        advice = "mend it, or delete it and say them anew by `headwater context set`"
        try:
            # as texts all: a realm may be called 2026, and a context on
            document = convert(_without_nulls(yaml.load(text, Loader=yaml.BaseLoader)) or {}, _ContextDocument)
        except yaml.YAMLError as fault:
            raise RefusedError(f"{path} holds no contexts, for it is no YAML: {advice}") from fault
        except msgspec.ValidationError as fault:  # which names the field, and no value: a store's URL may hold a login
            raise RefusedError(f"{path} holds no contexts: {fault}; {advice}") from fault
        contexts, known = (document.contexts or {}).items(), NamedContext.names()
        for name, said in contexts:
            if unknown := sorted(set(said or {}) - set(known)):
                raise RefusedError(
                    f"context {name!r} in {path} has {', '.join(unknown)}, and may have {', '.join(known)}: {advice}"
                )
        return cls(path, document.current, {name: NamedContext(name, **(said or {})) for name, said in contexts})

    def read_context(self, name: str) -> NamedContext:
        """The context of a name; raises NotFoundError with those that are there."""
        try:
            return self.contexts[name]
        except KeyError:
            there = ", ".join(sorted(self.contexts)) or "none"
            raise NotFoundError(f"there is no context {name!r} in {self.path}; its contexts: {there}") from None

    def save(self) -> None:
        """Write the file, whole or not at all. Raises RefusedError where it cannot be written."""
        import yaml

        document = {"current": self.current, "contexts": {each.name: each.said() for each in self.contexts.values()}}
        try:
            make_folder(self.path.parent)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".contexts.")  # which only its owner can read
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                yaml.safe_dump(document, file, sort_keys=False, allow_unicode=True)
            Path(name).replace(self.path)
        except OSError as fault:
            raise RefusedError(f"{self.path} cannot be written: {fault.strerror or fault}") from fault


def _without_nulls(value: Any) -> Any:
    """A document in which everything is text, without what YAML means by none."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items()}
    return "" if value in ("~", "null", "Null", "NULL") else value


def context_path(environment: Mapping[str, str]) -> Path:
    """Where a user's contexts are."""
    said = environment.get(variable_of("context_file"))
    if said:
        return Path(said).expanduser()
    base = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(base) / "headwater" / "contexts.yaml"


@dataclass(frozen=True, slots=True)
class CallDefaults:
    """What a call may leave out.

    context       what is said, by the environment or a context, under the context's name; that is empty where no context is in use
    origins       by the name of what is said: the variable or the context that says it
    """

    context: NamedContext
    origins: Mapping[str, str] = field(default_factory=dict)

    def told(self, *names: str) -> str:
        """Who says these, such as ``context 'prod'`` or ``HEADWATER_REALM``."""
        return " and ".join(dict.fromkeys(self.origins[name] for name in names if name in self.origins))


def read_defaults(environment: Mapping[str, str], name: str | None = None) -> CallDefaults:
    """What a call may leave out.

    name          the context that the command line asks for; None: the one of HEADWATER_CONTEXT, or else the one in use
    raises        NotFoundError for no such context; RefusedError for a file or a value that cannot be understood
    """
    chosen = _chosen_context(environment, name)
    origins = dict.fromkeys(chosen.said(), f"context {chosen.name!r}")
    for each in NamedContext.names():
        variable = variable_of(each)
        value = environment.get(variable, "")
        if not value:
            continue
        if each in _PLACE and value != getattr(chosen, each):
            below = _PLACE[_PLACE.index(each) + 1 :]
            chosen = replace(chosen, **dict.fromkeys(below, ""))
            origins = {name: origin for name, origin in origins.items() if name not in below}
        chosen = replace(chosen, **{each: value})
        origins[each] = variable
    if chosen.output and chosen.output not in OUTPUTS:
        raise RefusedError(f"{origins['output']} asks for the output {chosen.output!r}: there are {', '.join(OUTPUTS)}")
    return CallDefaults(chosen, origins)


def _chosen_context(environment: Mapping[str, str], name: str | None) -> NamedContext:
    if name is None:
        name = environment.get(variable_of("context"))
    if name == "":
        return NamedContext("")  # somebody asks for none
    file = ContextFile.read_file(context_path(environment))
    wanted = file.current if name is None else name
    return file.read_context(wanted) if wanted else NamedContext("")
