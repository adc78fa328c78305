"""Which properties a table, a view or a namespace may not have: those that choose the code, the address or the credentials of file access.

An engine merges a table's properties into those by which it reaches files. So whoever may write one table's properties would have
every reader of it run a module, or send the secret of the storage elsewhere. How files are reached is for the catalog's configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.errors import RefusedError

_PREFIXES = (
    "s3.", "gcs.", "adls.", "client.",
    "abfs.", "adl.", "auth.", "cos.", "ecs.", "fs.", "glue.", "gs.", "hadoop.", "header.", "hf.", "http-client.", "oss.", "rest.",
    "s3a.", "s3n.", "signer.", "wasb.",
)  # fmt: skip
"""The areas of names in which engines configure clients of storages and catalogs, the first four in every engine."""
_NAMES = frozenset({"credential", "oauth2-server-uri", "token"})
"""By these a client has its requests to a storage signed, and they are secrets themselves. ``uri`` is not among them, because Flink's SQL
writes it into every table; only a client that signs remotely, and is told by nobody where, would take it from there.
"""
_CODE = re.compile(r"(?:^|[._-])impl$")
"""What names code by its last word: ``py-io-impl``, ``io-impl``, ``write.location-provider.impl``, ``metrics-reporter-impl``."""
_SHOWN = 80


def check_properties(
    properties: Mapping[str, object],
    *,
    of: str,
    before: Mapping[str, object] | None = None,
    own: Mapping[str, object] | None = None,
) -> None:
    """Check the properties that a request gives a table, a view or a namespace.

    of            what has them, for the message: ``table sales.orders``
    before        what it has already: an import may have brought such a property, and a change of another one is no new choice
    own           what the owner of the process, or of the catalog, has configured: a property with the same value chooses nothing
    raises        RefusedError that names the properties, and never a value
    """
    refused = sorted(
        name
        for name, value in properties.items()
        if is_of_file_access(name) and not (_has(before, name, value) or _has(own, name, value))
    )
    if refused:
        shown = ", ".join(repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...") for name in refused[:5])
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise RefusedError(
            f"{of} cannot have {'properties' if refused[1:] else 'property'} {shown}{more}: code, address and credentials of file access"
            " are chosen by the catalog's configuration and by each client's own, never by a table, view or namespace. Leave out what is"
            " named here"
        )


def is_of_file_access(name: str) -> bool:
    """Whether a property of this name chooses the code, the address or the credentials by which files are reached."""
    folded = name.strip().casefold()
    return folded in _NAMES or folded.startswith(_PREFIXES) or _CODE.search(folded) is not None


def _has(properties: Mapping[str, object] | None, name: str, value: object) -> bool:
    return properties is not None and name in properties and properties[name] == value
