"""Management over HTTP: realms, catalogs, principals, roles, grants, tasks and runs as resources below ``/api/v1``.

Who may do what is decided by ``headwater.access``, and what it does by the packages that keep it: here are paths, bodies and the one
question that each route asks first. Nothing here must know how HTTP is spoken.
"""

from headwater_server.management.management_routes import management_table

__all__ = ["management_table"]
