"""What a grant is on, as a person writes it, and the stored grant that is made of it: checked before anything is stored.

(nothing)             the realm or the catalog that is spoken of
namespace:sales.eu    a namespace and what is below it; the elements of a key are joined by dots
table:sales.orders    a table by its key; view:sales.daily likewise
table:id=UUID         a table by its content id, whatever its key is
reference:dev*        branches and tags by their names, with * for any characters
"""

from __future__ import annotations

from uuid import UUID

from headwater.access.access_rules import Securable
from headwater.access.privileges import INCLUDED, Privilege, SecurableKind, check_grantable
from headwater.catalogs import CatalogGrant, ContentKey
from headwater.errors import RefusedError

_ID = "id="
_PATTERN_LIMIT = 255
_WITH_KEY = (SecurableKind.NAMESPACE, SecurableKind.TABLE, SecurableKind.VIEW)
_WITH_ID = (SecurableKind.TABLE, SecurableKind.VIEW)
_CREATIONS = {kind: Privilege(f"{kind.name}_CREATE") for kind in _WITH_ID}
_FORMS = "namespace:KEY, table:KEY, view:KEY, table:id=UUID, view:id=UUID or reference:PATTERN"


def parse_securable(text: str | None, *, catalog: str | None) -> Securable:
    """What a text means in a catalog, or in the realm where there is none; None or an empty one: the catalog or the realm itself.

    raises        RefusedError that says how it is written
    """
    if not text or text == (SecurableKind.REALM if catalog is None else SecurableKind.CATALOG):
        return Securable(kind=SecurableKind.REALM if catalog is None else SecurableKind.CATALOG, catalog=catalog)
    word, colon, name = text.partition(":")
    kind = SecurableKind(word) if word in (*_WITH_KEY, SecurableKind.REFERENCE) and colon and name else None
    if kind is None:
        raise RefusedError(f"{text[:200]!r} is nothing that a grant is on: write {_FORMS}")
    if catalog is None:
        raise RefusedError(f"{text[:200]!r} lies in a catalog: name it behind the realm, as in REALM/CATALOG")
    if kind is SecurableKind.REFERENCE:
        return Securable(kind=kind, catalog=catalog, pattern=checked_pattern(name))
    if kind in _WITH_ID and name.startswith(_ID):
        return Securable(kind=kind, catalog=catalog, content_id=_uuid(name.removeprefix(_ID)))
    return Securable(kind=kind, catalog=catalog, path=ContentKey.parse(name).elements)


def securable_text(on: Securable) -> str:
    """The text that ``parse_securable`` takes for it; ``realm`` and ``catalog`` for the whole."""
    if on.kind in (SecurableKind.REALM, SecurableKind.CATALOG):
        return on.kind.value
    if on.kind is SecurableKind.REFERENCE:
        return f"{on.kind}:{on.pattern}"
    return f"{on.kind}:{ContentKey(on.path) if on.path else f'{_ID}{on.content_id}'}"


def make_grant(privilege: Privilege, on: Securable, *, references: str = "") -> CatalogGrant:
    """The grant of a privilege on something in a catalog.

    references    the branches and tags on which it holds, as a pattern; empty: as the privilege has it, mostly the default branch
    raises        RefusedError where the privilege means nothing, and says where it does
    """
    check_grantable(privilege, on.kind)
    if on.kind is SecurableKind.REFERENCE:
        if references:
            raise RefusedError(f"a grant on references names its branches itself: leave {references[:200]!r} out")
        return CatalogGrant(privilege=privilege, on=on.kind, references=on.pattern)
    if on.content_id is not None and INCLUDED[privilege] == {privilege} and privilege in _CREATIONS.values():
        raise RefusedError(f"{privilege} cannot be granted by content id: what has one is there already; name its key")
    path = () if on.content_id is not None else on.path
    references = checked_pattern(references) if references else ""
    return CatalogGrant(privilege=privilege, on=on.kind, path=path, content_id=on.content_id, references=references)


def checked_pattern(text: str) -> str:
    """A pattern of branches and tags; raises RefusedError for one that no name can match."""
    if not text or len(text) > _PATTERN_LIMIT or not text.isprintable() or text != text.strip():
        raise RefusedError(
            f"{text[:200]!r} is no pattern of branches: up to {_PATTERN_LIMIT} characters of a name, with * for any, such as dev*"
        )
    return text


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise RefusedError(f"{text[:200]!r} is no content id: it is a UUID, which `headwater catalog tables` shows") from None
