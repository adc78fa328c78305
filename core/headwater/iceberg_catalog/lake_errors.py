"""What can be wrong with a request to a lake's catalog, in the words that Iceberg's clients hand on to their users.

Everything else is an error of ``headwater.errors``, or of ``headwater.iceberg.changes`` for a requirement that failed.
"""

from __future__ import annotations

from headwater.catalogs import Content, ContentKey, IcebergTable, IcebergView
from headwater.errors import ConflictError, NotFoundError, RefusedError


def dotted(key: ContentKey | None) -> str:
    """A key as Iceberg's clients write it: its elements joined with dots, unescaped; empty for the top."""
    return "" if key is None else ".".join(key.elements)


class NoSuchNamespaceError(NotFoundError):
    """There is no namespace at this key: none at all, or something else."""

    @classmethod
    def at(cls, key: ContentKey | None) -> NoSuchNamespaceError:
        return cls(f"Namespace does not exist: {dotted(key)}")


class NoSuchTableError(NotFoundError):
    """There is no Iceberg table at this key: nothing, or something else."""

    @classmethod
    def at(cls, key: ContentKey) -> NoSuchTableError:
        return cls(f"Table does not exist: {dotted(key)}")


class NoSuchViewError(NotFoundError):
    """There is no Iceberg view at this key: nothing, or something else."""

    @classmethod
    def at(cls, key: ContentKey) -> NoSuchViewError:
        return cls(f"View does not exist: {dotted(key)}")


class AlreadyExistsError(ConflictError):
    """The key that a creation, a registration or a rename wants is taken.

    wanted        what was to stand there: ``Table``, ``View`` or ``Namespace``
    name          the key, dotted
    held          the class of the content that stands there
    """

    def __init__(self, message: str, *, wanted: str = "", name: str = "", held: str = "") -> None:  # defaults: it is pickled
        super().__init__(message)
        self.wanted = wanted
        self.name = name
        self.held = held

    @classmethod
    def at(cls, key: ContentKey, content: Content, *, wanted: str) -> AlreadyExistsError:
        """For a creation of what ``wanted`` names, such as ``Table``."""
        noun = noun_of(content)
        text = f"{wanted} already exists" if noun == wanted else f"{noun} with same name already exists"
        return cls(f"{text}: {dotted(key)}", wanted=wanted, name=dotted(key), held=type(content).__name__)

    @classmethod
    def of_rename(cls, source: ContentKey, target: ContentKey, content: Content, *, wanted: str) -> AlreadyExistsError:
        text = f"Cannot rename {dotted(source)} to {dotted(target)}. {noun_of(content)} already exists"
        return cls(text, wanted=wanted, name=dotted(target), held=type(content).__name__)


def noun_of(content: Content) -> str:
    """The word of Iceberg's clients for a content."""
    return (
        "Table" if isinstance(content, IcebergTable) else "View" if isinstance(content, IcebergView) else type(content).__name__
    )


class NamespaceNotEmptyError(ConflictError):
    """A namespace with something below it is not dropped."""


class PropertyClashError(RefusedError):
    """A request would both remove and set the same property."""


class ReadOnlyReferenceError(RefusedError):
    """The reference is a tag or a commit: it can only be read."""
