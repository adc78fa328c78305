"""The routes of Iceberg REST: every operation of its specification that is served."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from headwater_server.iceberg_rest.catalog_config import config_handler, realm_of_warehouse, with_only_warehouse
from headwater_server.iceberg_rest.document_shapes import DOCUMENT_SHAPES
from headwater_server.iceberg_rest.error_meanings import ERROR_MEANINGS
from headwater_server.iceberg_rest.missed_paths import path_advice
from headwater_server.iceberg_rest.models import (
    CatalogConfig,
    CommitTableRequest,
    CommitTableResponse,
    CommitTransactionRequest,
    CommitViewRequest,
    ConfigQuery,
    CreateNamespaceRequest,
    CreateTableRequest,
    CreateViewRequest,
    DropTableQuery,
    ListNamespacesResponse,
    ListTablesResponse,
    LoadCredentialsResponse,
    LoadTableQuery,
    LoadTableResult,
    LoadViewResult,
    NamespaceResponse,
    NamespacesQuery,
    OAuthError,
    OAuthToken,
    PageQuery,
    RegisterTableRequest,
    RegisterViewRequest,
    RenameTableRequest,
    UpdateNamespacePropertiesRequest,
    UpdateNamespacePropertiesResponse,
)
from headwater_server.iceberg_rest.namespaces import (
    answer_namespace,
    answer_namespace_check,
    answer_namespace_creation,
    answer_namespace_drop,
    answer_namespace_properties,
    answer_namespaces,
)
from headwater_server.iceberg_rest.tables import (
    answer_metrics,
    answer_table,
    answer_table_check,
    answer_table_commit,
    answer_table_creation,
    answer_table_credentials,
    answer_table_drop,
    answer_table_registration,
    answer_table_rename,
    answer_tables,
    answer_transaction,
)
from headwater_server.iceberg_rest.token_answers import answer_revocation, answer_token
from headwater_server.iceberg_rest.views import (
    answer_view,
    answer_view_check,
    answer_view_commit,
    answer_view_creation,
    answer_view_drop,
    answer_view_registration,
    answer_view_rename,
    answer_views,
)
from headwater_server.lake_sessions import realm_of_prefix
from headwater_server.route_table import HeaderField, Route, RouteTable

MOUNT = "/iceberg"
_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLES, _TABLE = f"{_NAMESPACE}/tables", f"{_NAMESPACE}/tables/{{table}}"
_VIEWS, _VIEW = f"{_NAMESPACE}/views", f"{_NAMESPACE}/views/{{view}}"
_NOTHING = {204: None}
_READ, _CHANGE = (404,), (404, 409, 422)
_KEY = HeaderField("Idempotency-Key", "A UUID of version 7: a repeat under the same key has no second effect")
_KNOWN_TAG = HeaderField("If-None-Match", "Tags of versions that the client has")
_DELEGATION = HeaderField(
    "X-Iceberg-Access-Delegation", "With `vended-credentials`: the client takes credentials for the files"
)
_TAG = HeaderField("ETag", "The tag of this version", is_certain=True)
_TAG_OF_LOAD = HeaderField("ETag", "The tag of this version, of these snapshots; an answer with credentials has none")
_TAG_OF_STORED = HeaderField("ETag", "The tag of the version; one that is only prepared, or comes with credentials, has none")
_TOKEN_REQUEST_BYTES = 32 * 1024
"""Two tokens and a secret fit well. Nobody has proved to call who sends it, and a few large ones would keep everybody's bodies out."""
_UNLISTED = frozenset({"getConfig", "getToken", "revokeToken"})
"""Operations that clients call without looking whether they are served."""


@cache
def iceberg_table() -> RouteTable:
    """Make the table of Iceberg REST's routes."""
    config = Route(
        method="GET",
        template="/v1/config",
        handler=config_handler(lambda: listed_endpoints(table)),
        name="getConfig",
        summary="Say how a warehouse is reached, and which operations are served.",
        query=ConfigQuery,
        realm_of=realm_of_warehouse,
        complete_query=with_only_warehouse,
        answers={200: CatalogConfig},
        errors=_READ,
    )
    token = Route(
        method="POST",
        template="/v1/oauth/tokens",
        handler=answer_token,
        name="getToken",
        summary="Give a token for a client's credentials, or for a token that still holds.",
        is_open=True,
        body=bytes,
        raw_type="application/x-www-form-urlencoded",
        most_bytes=_TOKEN_REQUEST_BYTES,
        answers={200: OAuthToken, 400: OAuthError, 401: OAuthError},
    )
    revocation = Route(
        method="POST",
        template="/v1/oauth/revoke",
        handler=answer_revocation,
        name="revokeToken",
        summary="End a token of this server before its time, and all that it was exchanged for.",
        is_open=True,
        writes=True,
        body=bytes,
        raw_type="application/x-www-form-urlencoded",
        most_bytes=_TOKEN_REQUEST_BYTES,
        answers={200: None, 400: OAuthError},
    )
    content = (*_namespace_routes(), *_table_routes(), *_view_routes())
    routes = [config, token, revocation, *(replace(route, realm_of=realm_of_prefix) for route in content)]
    table = RouteTable(
        MOUNT,
        routes,
        meanings=ERROR_MEANINGS,
        shapes=DOCUMENT_SHAPES,
        advice=lambda segments: path_advice(table, segments),
    )
    return table


def listed_endpoints(table: RouteTable) -> list[str]:
    """What ``/v1/config`` lists."""
    return [route.endpoint for route in table.routes if route.name not in _UNLISTED]


def _namespace_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_NAMESPACES,
            handler=answer_namespaces,
            name="listNamespaces",
            summary="List the namespaces directly below one, or at the top.",
            query=NamespacesQuery,
            answers={200: ListNamespacesResponse},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_NAMESPACES,
            handler=answer_namespace_creation,
            name="createNamespace",
            summary="Create a namespace, and the missing ones above it.",
            writes=True,
            body=CreateNamespaceRequest,
            answers={200: NamespaceResponse},
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_NAMESPACE,
            handler=answer_namespace,
            name="loadNamespaceMetadata",
            summary="Read the properties of a namespace.",
            answers={200: NamespaceResponse},
            errors=_READ,
        ),
        Route(
            method="HEAD",
            template=_NAMESPACE,
            handler=answer_namespace_check,
            name="namespaceExists",
            summary="Tell whether there is a namespace.",
            answers=_NOTHING,
            errors=_READ,
        ),
        Route(
            method="DELETE",
            template=_NAMESPACE,
            handler=answer_namespace_drop,
            name="dropNamespace",
            summary="Drop an empty namespace.",
            writes=True,
            answers=_NOTHING,
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_NAMESPACE}/properties",
            handler=answer_namespace_properties,
            name="updateProperties",
            summary="Remove and set properties of a namespace.",
            writes=True,
            body=UpdateNamespacePropertiesRequest,
            answers={200: UpdateNamespacePropertiesResponse},
            headers=(_KEY,),
            errors=_CHANGE,
        ),
    ]


def _table_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_TABLES,
            handler=answer_tables,
            name="listTables",
            summary="List the tables directly below a namespace.",
            query=PageQuery,
            answers={200: ListTablesResponse},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_TABLES,
            handler=answer_table_creation,
            name="createTable",
            summary="Create a table, or prepare one that a commit creates.",
            writes=True,
            body=CreateTableRequest,
            answers={200: LoadTableResult},
            headers=(_KEY, _DELEGATION),
            answer_headers=(_TAG_OF_STORED,),
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_NAMESPACE}/register",
            handler=answer_table_registration,
            name="registerTable",
            summary="Register the table of a metadata file.",
            writes=True,
            body=RegisterTableRequest,
            answers={200: LoadTableResult},
            headers=(_KEY, _DELEGATION),
            answer_headers=(_TAG_OF_LOAD,),
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_TABLE,
            handler=answer_table,
            name="loadTable",
            summary="Load a table, unless the client has this version of it.",
            query=LoadTableQuery,
            answers={200: LoadTableResult, 304: None},
            headers=(_KNOWN_TAG, _DELEGATION),
            answer_headers=(_TAG_OF_LOAD,),
            errors=_READ,
        ),
        Route(
            method="HEAD",
            template=_TABLE,
            handler=answer_table_check,
            name="tableExists",
            summary="Tell whether there is a table.",
            answers=_NOTHING,
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_TABLE,
            handler=answer_table_commit,
            name="updateTable",
            summary="Commit updates to a table, or create a prepared one.",
            writes=True,
            body=CommitTableRequest,
            answers={200: CommitTableResponse},
            headers=(_KEY,),
            answer_headers=(_TAG,),
            errors=_CHANGE,
        ),
        Route(
            method="DELETE",
            template=_TABLE,
            handler=answer_table_drop,
            name="dropTable",
            summary="Drop a table, and delete its files later if that is asked for.",
            writes=True,
            query=DropTableQuery,
            answers=_NOTHING,
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=f"{_TABLE}/credentials",
            handler=answer_table_credentials,
            name="loadCredentials",
            summary="Give credentials for a table's files, where its storage has some for clients.",
            answers={200: LoadCredentialsResponse},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=f"{_TABLE}/metrics",
            handler=answer_metrics,
            name="reportMetrics",
            summary="Take a report of a scan or a commit.",
            body=bytes,
            answers=_NOTHING,
            raw_type="application/json",
        ),
        Route(
            method="POST",
            template="/v1/{prefix}/tables/rename",
            handler=answer_table_rename,
            name="renameTable",
            summary="Rename a table, also into another namespace.",
            writes=True,
            body=RenameTableRequest,
            answers=_NOTHING,
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template="/v1/{prefix}/transactions/commit",
            handler=answer_transaction,
            name="commitTransaction",
            summary="Commit updates to several tables, all or none.",
            writes=True,
            body=CommitTransactionRequest,
            answers=_NOTHING,
            headers=(_KEY,),
            errors=_CHANGE,
        ),
    ]


def _view_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_VIEWS,
            handler=answer_views,
            name="listViews",
            summary="List the views directly below a namespace.",
            query=PageQuery,
            answers={200: ListTablesResponse},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_VIEWS,
            handler=answer_view_creation,
            name="createView",
            summary="Create a view.",
            writes=True,
            body=CreateViewRequest,
            answers={200: LoadViewResult},
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_VIEW,
            handler=answer_view,
            name="loadView",
            summary="Load a view.",
            answers={200: LoadViewResult},
            errors=_READ,
        ),
        Route(
            method="HEAD",
            template=_VIEW,
            handler=answer_view_check,
            name="viewExists",
            summary="Tell whether there is a view.",
            answers=_NOTHING,
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_VIEW,
            handler=answer_view_commit,
            name="replaceView",
            summary="Commit updates to a view.",
            writes=True,
            body=CommitViewRequest,
            answers={200: LoadViewResult},
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="DELETE",
            template=_VIEW,
            handler=answer_view_drop,
            name="dropView",
            summary="Drop a view.",
            writes=True,
            answers=_NOTHING,
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template="/v1/{prefix}/views/rename",
            handler=answer_view_rename,
            name="renameView",
            summary="Rename a view, also into another namespace.",
            writes=True,
            body=RenameTableRequest,
            answers=_NOTHING,
            headers=(_KEY,),
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_NAMESPACE}/register-view",
            handler=answer_view_registration,
            name="registerView",
            summary="Register the view of a metadata file.",
            writes=True,
            body=RegisterViewRequest,
            answers={200: LoadViewResult},
            headers=(_KEY,),
            errors=_CHANGE,
        ),
    ]
