"""What is in a catalog, as resources of management: references, commits, entries, tables, differences and merges, as a caller sees them.

They say what Nessie's and Iceberg's APIs say to their clients, in the words of management and in pages that a person can look at. Who may
see what is decided there, by the same sessions. Nothing here must know how principals, roles and tasks are kept.
"""

from headwater_server.management.contents.contents_routes import contents_routes

__all__ = ["contents_routes"]
