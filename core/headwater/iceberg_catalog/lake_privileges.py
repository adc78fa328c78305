"""Which privilege each kind of content needs for what is done with it."""

from __future__ import annotations

from headwater.access import Privilege, SecurableKind
from headwater.catalogs import ContentType, parse_revspec

_P = Privilege
CONTENT_KINDS = {
    privilege: kind
    for kind in (SecurableKind.NAMESPACE, SecurableKind.TABLE, SecurableKind.VIEW)
    for privilege in Privilege
    if privilege.startswith(f"{kind.upper()}_")
}
"""What each privilege on content is asked about."""
LIST_PRIVILEGES = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_LIST,
    SecurableKind.TABLE: _P.TABLE_LIST,
    SecurableKind.VIEW: _P.VIEW_LIST,
}
CREATE_PRIVILEGES = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_CREATE,
    SecurableKind.TABLE: _P.TABLE_CREATE,
    SecurableKind.VIEW: _P.VIEW_CREATE,
}
CHANGE_PRIVILEGES = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_WRITE_PROPERTIES,
    SecurableKind.TABLE: _P.TABLE_WRITE_PROPERTIES,
    SecurableKind.VIEW: _P.VIEW_WRITE_PROPERTIES,
}
SHOW_PRIVILEGES = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_READ_PROPERTIES,
    SecurableKind.TABLE: _P.TABLE_READ_PROPERTIES,
    SecurableKind.VIEW: _P.VIEW_READ_PROPERTIES,
}
REPLACE_PRIVILEGES = {**CHANGE_PRIVILEGES, SecurableKind.TABLE: _P.TABLE_WRITE_DATA}
"""What a change needs that may change the files of a table."""
DROP_PRIVILEGES = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_DROP,
    SecurableKind.TABLE: _P.TABLE_DROP,
    SecurableKind.VIEW: _P.VIEW_DROP,
}
READ_PRIVILEGES = {
    SecurableKind.NAMESPACE: _P.NAMESPACE_READ_PROPERTIES,
    SecurableKind.TABLE: _P.TABLE_READ_DATA,
    SecurableKind.VIEW: _P.VIEW_READ_PROPERTIES,
}


def securable_kind(content_type: ContentType | int) -> SecurableKind:
    """The kind by which a content is judged. What a view runs, a view's function, too; everything else as a table, also what only a
    newer release knows: nothing goes unasked.
    """
    if content_type is ContentType.NAMESPACE:
        return SecurableKind.NAMESPACE
    return SecurableKind.VIEW if content_type in (ContentType.ICEBERG_VIEW, ContentType.UDF) else SecurableKind.TABLE


def needs_history(text: str | None) -> bool:
    """Whether a text names anything but the present head of a branch or tag."""
    spec = None if text is None else parse_revspec(text)
    return spec is not None and (spec.commit is not None or bool(spec.steps))
