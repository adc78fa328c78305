"""The routes of Nessie's API, of both versions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from headwater_server.nessie.api_config import config_routes
from headwater_server.nessie.api_paths import NESSIE_MOUNT, fold_path, nessie_path_advice
from headwater_server.nessie.branch_commits import commit_routes
from headwater_server.nessie.branch_merges import merge_routes
from headwater_server.nessie.content_answers import content_routes
from headwater_server.nessie.diff_answers import diff_routes
from headwater_server.nessie.entry_answers import entry_routes
from headwater_server.nessie.history_answers import history_routes
from headwater_server.nessie.listed_references import listed_references_routes
from headwater_server.nessie.namespace_answers import namespace_routes
from headwater_server.nessie.nessie_errors import NESSIE_MEANINGS, NessieError, nessie_error_body
from headwater_server.nessie.nessie_session import realm_of_nessie
from headwater_server.nessie.recent_answers import recent_routes
from headwater_server.nessie.reference_answers import reference_routes
from headwater_server.route_table import RouteTable


@cache
def nessie_table() -> RouteTable:
    """Make the table of the routes of Nessie's API. Each is judged by the realm in its path."""
    parts = (
        config_routes(),
        reference_routes(),
        listed_references_routes(),
        recent_routes(),
        content_routes(),
        entry_routes(),
        history_routes(),
        diff_routes(),
        namespace_routes(),
        commit_routes(),
        merge_routes(),
    )
    return RouteTable(
        NESSIE_MOUNT,
        [replace(route, realm_of=realm_of_nessie) for part in parts for route in part],
        meanings=NESSIE_MEANINGS,
        advice=nessie_path_advice,
        fold=fold_path,
        error_body=nessie_error_body,
        error_shape=NessieError,
    )
