"""What the routes of management share: the paths that they stand below, the errors that they meet, and rights as the docs name them."""

from __future__ import annotations

REALM_PATH = "/realms/{realm}"
CATALOGS_PATH = f"{REALM_PATH}/catalogs"
CATALOG_PATH = f"{CATALOGS_PATH}/{{catalog}}"
REFERENCES_PATH = f"{CATALOG_PATH}/references"
REFERENCE_PATH = f"{REFERENCES_PATH}/{{ref}}"
TABLE_PATH = f"{REFERENCE_PATH}/tables/{{key}}"
READ_ERRORS, CHANGE_ERRORS = (404,), (404, 409)
NO_BODY = {204: None}
REALM_RIGHT = "SERVICE_MANAGE_ACCESS on the realm"
GRANTS_RIGHT = "CATALOG_MANAGE_ACCESS on the catalog"
