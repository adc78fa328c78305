"""The routes of a catalog's contents."""

from __future__ import annotations

from headwater_server.management.contents.commit_graph import graph_routes
from headwater_server.management.contents.commit_resources import log_routes
from headwater_server.management.contents.difference_resources import difference_routes
from headwater_server.management.contents.entry_resources import content_entry_routes
from headwater_server.management.contents.merge_resources import branch_merge_routes
from headwater_server.management.contents.reference_resources import catalog_reference_routes
from headwater_server.management.contents.table_files import table_file_routes
from headwater_server.management.contents.table_resources import table_routes
from headwater_server.route_table import Route


def contents_routes() -> list[Route]:
    """Make the routes of what is in a catalog."""
    return [
        *catalog_reference_routes(),
        *log_routes(),
        *graph_routes(),
        *content_entry_routes(),
        *table_routes(),
        *table_file_routes(),
        *difference_routes(),
        *branch_merge_routes(),
    ]
