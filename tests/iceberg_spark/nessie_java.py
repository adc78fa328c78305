"""Nessie's own client in Java, of version 2 of the API, which Iceberg's runtime brings along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nessie_lake import NessieLake
from py4j.protocol import Py4JJavaError

T = TypeVar("T")
_MODEL = "org.projectnessie.model"
_CLIENT = "org.projectnessie.client"


class JavaFault(Exception):
    """What the client threw: the name of the exception's class, and the conflicts that the server told, by kind and key."""

    def __init__(self, thrown: Any) -> None:
        self.kind = str(thrown.getClass().getSimpleName())
        self.conflicts: list[tuple[str, str]] = []
        if self.kind == "NessieReferenceConflictException" and thrown.getErrorDetails() is not None:
            self.conflicts = [
                (str(each.conflictType().name()), "" if each.key() is None else str(each.key().toPathString()))
                for each in thrown.getErrorDetails().conflicts()
            ]
        super().__init__(f"{self.kind}: {thrown.getMessage()}")


@dataclass(frozen=True)
class NessieJava:
    """The client, for the catalog that Spark knows as ``nessie``. ``api`` is what it begins every request with."""

    lake: NessieLake
    api: Any

    @classmethod
    def connect(cls, lake: NessieLake) -> NessieJava:
        builder = lake.sql.java_class(f"{_CLIENT}.NessieClientBuilder").createClientBuilder("HTTP", None)
        kind = lake.sql.java_class("java.lang.Class").forName(f"{_CLIENT}.api.NessieApiV2")
        return cls(lake, builder.withUri(lake.options()["uri"]).build(kind))

    def model(self, name: str) -> Any:
        """A class of the model, such as ``Branch``."""
        return self.lake.sql.java_class(f"{_MODEL}.{name}")

    def key(self, text: str) -> Any:
        return self.model("ContentKey").fromPathString(text)

    def head(self, name: str = "main") -> Any:
        """A branch or tag as it is now."""
        return self.api.getReference().refName(name).get()

    def create_branch(self, name: str, source: str = "main") -> None:
        made = self.model("Branch").of(name, self.head(source).getHash())
        self.api.createReference().sourceRefName(source).reference(made).create()

    def put_namespace(self, name: str) -> Any:
        return self.model("Operation$Put").of(self.key(name), self.model("Namespace").parse(name))

    def delete(self, name: str) -> Any:
        return self.model("Operation$Delete").of(self.key(name))

    def commit(self, branch: str, *operations: Any, expected: str | None = None) -> Any:
        """Commit operations made from a commit, or else from the present head."""
        builder = self.api.commitMultipleOperations().branchName(branch).hash(expected or self.head(branch).getHash())
        builder = builder.commitMeta(self.model("CommitMeta").fromMessage("by the client in Java"))
        for operation in operations:
            builder = builder.operation(operation)
        return called(builder.commitWithResponse)

    def merge(self, source: str, **switches: Any) -> Any:
        """Merge a branch into ``main``; switches are called as the client calls them."""
        builder = self.api.mergeRefIntoBranch().branch(self.head()).fromRef(self.head(source))
        for name, value in switches.items():
            builder = getattr(builder, name)(*value) if isinstance(value, tuple) else getattr(builder, name)(value)
        return called(builder.merge)


def called(call: Callable[[], T]) -> T:
    """What a call returns; raises JavaFault."""
    try:
        return call()
    except Py4JJavaError as error:
        raise JavaFault(error.java_exception) from None
