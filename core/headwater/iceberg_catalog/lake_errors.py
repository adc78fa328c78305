"""What can be wrong with a request to a lake's catalog, in the words that Iceberg's clients hand on to their users.

Everything else is an error of ``headwater.errors``, or of ``headwater.iceberg.changes`` for a requirement that failed.
"""

from __future__ import annotations

from headwater.catalogs import ContentKey
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
    """The key that a creation, a registration or a rename wants is taken."""


class NamespaceNotEmptyError(ConflictError):
    """A namespace with something below it is not dropped."""


class PropertyClashError(RefusedError):
    """A request would both remove and set the same property."""


class ReadOnlyReferenceError(RefusedError):
    """The reference is a tag or a commit: it can only be read."""
