"""The doors of a lake for pyiceberg: the client of the library, and its own REST catalog against a server. Tests go through both.

What a door does not have is said here, by the names of tests.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    ValidationException,
)

__all__ = ["LIBRARY_ONLY", "NO_NAMESPACE", "NO_TABLE", "QUICK_BY_REST", "REFUSED", "connect"]

REFUSED = (ValueError, ValidationException, BadRequestError)
"""What will never work as it was asked for: the library tells by ValueError and, while committing, ValidationException."""
NO_NAMESPACE = (NoSuchNamespaceError, RESTError)
NO_TABLE = (NoSuchTableError, CommitFailedException, RESTError)
"""pyiceberg's REST catalog knows some 404 by a class of their own, others only as answers of a server."""

_BETWEEN = "somebody acts between the library's look at a table and its commit, in its thread"
LIBRARY_ONLY: Mapping[str, str] = {
    "test_change_beaten_by_a_drop_fails_and_leaves_no_file": _BETWEEN,
    "test_change_meets_the_branch_where_it_was_put_meanwhile": _BETWEEN,
    "test_change_that_another_tables_change_overtakes_is_not_beaten": _BETWEEN,
    "test_change_that_was_beaten_is_made_anew_without_litter": _BETWEEN,
    "test_client_on_a_store_of_its_callers_is_sent_nowhere": "a client of a server has no store",
    "test_existing_table_is_not_created_where_nothing_can_be": "over REST a client asks to create, and hears that nothing can be",
    "test_imported_table_is_rid_of_such_a_property": "pyiceberg removes only what it sees, and over REST it does not see it",
    "test_log_says_what_was_done_and_by_whom": "a server notes no author, as it does not know who calls",
    "test_namespace_needs_a_name": "over REST a blank is a name, and others are refused in the server's words",
    "test_namespace_takes_no_null_property": "JSON has no name that is null",
    "test_partitions_are_not_overwritten_by_way_of_a_tables_module": "over REST they are: the property does not reach the client",
    "test_provider_that_the_client_names_itself_is_used": "a server does not know what its clients configure for themselves",
    "test_table_that_pyiceberg_does_not_read_is_named": "over REST pyiceberg reads the document by itself, and words it",
    "test_text_that_cannot_be_a_name_is_no_table": "pyiceberg's REST catalog raises for most of them and asks nobody",
    "test_transaction_writes_nothing_where_another_table_lies": "over REST pyiceberg writes before it asks",
}
"""Tests that only go through the library, and why."""
QUICK_BY_REST = frozenset({"test_client_namespaces", "test_client_tables", "test_client_views"})
"""The modules whose tests go over REST among the quick ones, too; the others only among the long ones."""


def connect(
    url: str, *, realm: str = "acme", catalog: str = "lake", branch: str = "", author: str = "", **properties: str
) -> RestCatalog:
    """Connect as a client of a server does; ``author`` is heard by nobody there."""
    warehouse = f"{realm}/{catalog}" + (f"@{branch}" if branch else "")
    return RestCatalog("rest", uri=f"{url}/iceberg", warehouse=warehouse, **properties)


def own_properties(catalog: IcebergCatalog, namespace: str) -> dict[str, str]:
    """The properties of a namespace without its location, which Iceberg REST computes where none is stored."""
    return {name: value for name, value in catalog.load_namespace_properties(namespace).items() if name != "location"}
