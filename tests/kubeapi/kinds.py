"""Kinds of objects that are served, and how each behaves."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeapi.admission import CompiledKind

__all__ = ["ALL_VERBS", "Column", "Kind", "Kinds"]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. ``read`` gives its cell from an object and the time (seconds) at which it is shown."""

    name: str
    read: Callable[[Mapping[str, Any], float], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    @property
    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind in one version.

    schema          of its fields, where it is known: types of lists and maps say who owns what
    baseline        what every object of it has, and so belongs to nobody
    renamed         fields that are called otherwise in what is stored: {name here: name in ``stored_as``}
    compiled        the validation of a custom resource
    has_versions    whether what is stored may be of another version
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    is_namespaced: bool = True
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[str, ...] = ()
    has_generation: bool = False
    is_custom: bool = False
    is_unconditional: bool = True
    is_made_by_put: bool = False
    is_shown_when_deleted: bool = False
    name_rule: str = "subdomain"
    columns: tuple[Column, ...] = ()
    selectable: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    stored_as: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    compiled: CompiledKind | None = None
    has_versions: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with its group, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def shelf(self) -> str:
        """Where its objects are kept: the same for all versions."""
        return self.stored_as or self.resource

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def is_kept(self) -> bool:
        """False for what is asked and answered, and never stored."""
        return "get" in self.verbs

    @property
    def storage_hash(self) -> str:
        """As clients know a stored version: the start of a digest of its name."""
        version = "v1beta1" if self.kind == "CustomResourceDefinition" else self.version  # the first one it was stored as
        digest = hashlib.sha256(f"{self.group}/{version}/{self.kind}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()


class Kinds:
    """All kinds that are served now."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self.generation = 0
        """Goes up with each change, so that what is derived from the kinds can be kept until then."""
        for kind in kinds:
            self.put(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def of_object(self, body: Mapping[str, Any]) -> Kind | None:
        group, _, version = str(body.get("apiVersion", "")).rpartition("/")
        return next((k for k in self if (k.group, k.version, k.kind) == (group, version, body.get("kind"))), None)

    def put(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        for key in [key for key in self._kinds if key[0] == group and key[2] == plural]:
            del self._kinds[key]
        self.generation += 1

    def groups(self) -> dict[str, list[str]]:
        """Versions by group, in the order of their first mention; the core group is ""."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found

    def served(self, group: str, version: str) -> list[Kind]:
        return sorted((k for k in self if (k.group, k.version) == (group, version)), key=lambda kind: kind.plural)
