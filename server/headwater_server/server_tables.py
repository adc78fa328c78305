"""Everything that a server answers, as the tables of its protocols: the process, the OpenAPI document and the docs take them from here."""

from __future__ import annotations

from headwater_server.iceberg_rest import iceberg_table
from headwater_server.management import management_table
from headwater_server.nessie import nessie_table
from headwater_server.route_table import RouteTable


def server_tables() -> list[RouteTable]:
    """Make the tables."""
    return [iceberg_table(), management_table(), nessie_table()]
