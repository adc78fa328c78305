"""pyiceberg's identifiers as content keys, and back."""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.typedef import Identifier

from headwater.catalogs import ContentKey
from headwater.errors import RefusedError

__all__ = ["identifier_of", "key_of", "namespace_key", "shown"]


def key_of(identifier: str | Identifier, fault: type[Exception]) -> ContentKey:
    """The key of a table or view.

    fault         raised for an identifier that no key can have: no content has it either
    """
    try:
        return ContentKey(Catalog.identifier_to_tuple(identifier))
    except RefusedError as refused:
        raise fault(str(refused)) from refused


def namespace_key(namespace: str | Identifier) -> ContentKey:
    """The key of a namespace; NoSuchNamespaceError for an empty one, and for what no key can be."""
    Catalog.namespace_to_string(namespace, NoSuchNamespaceError)
    return key_of(namespace, NoSuchNamespaceError)


def identifier_of(key: ContentKey) -> Identifier:
    return key.elements


def shown(key: ContentKey) -> str:
    """As pyiceberg writes a name."""
    return ".".join(key.elements)
