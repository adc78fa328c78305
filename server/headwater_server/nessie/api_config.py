"""What Nessie's clients ask first: which versions are served, and how the repository is configured.

The configuration of a repository is for Nessie's own collector. It is kept as a property of the catalog, for tools that read and write
it; what Headwater collects, and when, is decided by its own settings.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from headwater.access import ForbiddenError, Privilege, Securable, SecurableKind, reference_of
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.clock import as_text
from headwater.errors import ConflictError, RefusedError, SwapConflictError
from headwater.typed_values import convert
from headwater_server.audit_trail import current_trail
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import CHANGE_ERRORS, READ_ERRORS, V1, V2
from headwater_server.nessie.nessie_session import NessieSession, open_nessie
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH
from headwater_server.nessie.reference_shapes import (
    NessieConfig,
    NessieConfigV1,
    RepositoryConfigAnswer,
    RepositoryConfigChange,
    RepositoryConfigQuery,
    RepositoryConfigs,
)
from headwater_server.realm_directory import RealmDirectory
from headwater_server.route_table import Route

SPEC_VERSION: Final = "2.2.0"
"""The level of Nessie's specification that is served."""
_OLDEST, _NEWEST = 1, 2
_TYPE: Final = "GARBAGE_COLLECTOR"
_PROPERTY: Final = "nessie.garbage-collector"
_SIZE_LIMIT: Final = 1024
"""Characters that a property of a catalog may have."""
_POLICY: Final = re.compile(r"NONE|[1-9][0-9]{0,8}|P(?=.)[0-9DTHMS.]*|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")


class _PolicyOfReferences(msgspec.Struct, frozen=True, rename="camel"):
    """The policy of the references whose names match."""

    reference_name_pattern: str
    policy: str


class _CollectorConfig(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How Nessie's collector is configured."""

    type: str = ""
    default_cutoff_policy: str | None = None
    per_ref_cutoff_policies: list[_PolicyOfReferences] | None = None
    new_files_grace_period: str | None = None
    expected_file_count_per_content: int | None = None


def config_routes() -> list[Route]:
    """Make the routes of configurations."""
    return [
        Route(
            method="GET",
            template=f"{V2}/config",
            handler=answer_config,
            name="nessieGetConfig",
            needs="any right in the catalog",
            summary="Say which versions of Nessie's API are served, and what the catalog is.",
            answers={200: NessieConfig},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V1}/config",
            handler=answer_config_v1,
            name="nessieGetConfigV1",
            needs="any right in the catalog",
            summary="Say what version 1 of Nessie's API knows of a catalog.",
            answers={200: NessieConfigV1},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V2}/config/repository",
            handler=answer_repository_config,
            name="nessieGetRepositoryConfig",
            needs="CATALOG_READ_PROPERTIES on the catalog",
            summary="List the configurations of the repository that are set.",
            query=RepositoryConfigQuery,
            answers={200: RepositoryConfigs},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{V2}/config/repository",
            handler=answer_repository_config_change,
            name="nessieSetRepositoryConfig",
            needs="CATALOG_WRITE_PROPERTIES on the catalog",
            summary="Set a configuration of the repository, and say what was set before.",
            writes=True,
            body=RepositoryConfigChange,
            answers={200: RepositoryConfigAnswer},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_config(call: Call[None, None]) -> Answer:
    """Say which versions are served, and what the catalog is."""
    session = open_nessie(call)
    created = as_text(session.definition.created)
    return Answer(
        body=NessieConfig(
            default_branch=session.definition.default_branch,
            min_supported_api_version=_OLDEST,
            max_supported_api_version=_NEWEST,
            actual_api_version=2,
            spec_version=SPEC_VERSION,
            no_ancestor_hash=NO_ANCESTOR_HASH,
            repository_creation_timestamp=created,
            oldest_possible_commit_timestamp=created,
        )
    )


def answer_config_v1(call: Call[None, None]) -> Answer:
    """Say what version 1 knows of a catalog."""
    branch = open_nessie(call).definition.default_branch
    return Answer(body=NessieConfigV1(default_branch=branch, max_supported_api_version=_NEWEST))


def answer_repository_config(call: Call[RepositoryConfigQuery, None]) -> Answer:
    """List the configurations of the repository that are set."""
    session = open_nessie(call)
    _check_right(session, Privilege.CATALOG_READ_PROPERTIES)
    for wanted in call.query.type:
        _check_type(wanted)
    known = _stored(Catalogs(session.rows).read_catalog(session.definition.name))
    return Answer(body=RepositoryConfigs([] if known is None else [known]))


def answer_repository_config_change(call: Call[None, RepositoryConfigChange]) -> Answer:
    """Set a configuration of the repository, and say what was set before."""
    session = open_nessie(call)
    _check_right(session, Privilege.CATALOG_WRITE_PROPERTIES)
    text = _checked_config(call.body.config)
    before = Catalogs(session.rows).read_catalog(session.definition.name)
    if before.id != session.definition.id:
        raise ConflictError(f"catalog {before.name!r} was replaced just now: look again")
    properties = {**before.properties, _PROPERTY: text}
    try:
        Catalogs(session.rows).update_catalog(before, properties=properties)
    except SwapConflictError as fault:
        raise ConflictError(str(fault)) from fault
    call.served.part(RealmDirectory).forget_realm(call.path["realm"])
    return Answer(body=RepositoryConfigAnswer(previous=_stored(before)))


def _stored(definition: CatalogDefinition) -> dict[str, Any] | None:
    text = definition.properties.get(_PROPERTY)
    try:
        config = None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:  # the property was written by hand
        return None
    return {**config, "type": _TYPE} if isinstance(config, dict) else None


def _checked_config(config: dict[str, Any]) -> str:
    """A configuration as it is stored; raises RefusedError for one that Nessie's collector could not read."""
    _check_type(config.get("type"))
    try:
        parsed = convert(config, _CollectorConfig)
    except msgspec.ValidationError as fault:
        raise RefusedError(f"config: {fault}") from None
    policies = [parsed.default_cutoff_policy, *(each.policy for each in parsed.per_ref_cutoff_policies or ())]
    for policy in policies:
        if policy is not None and not _POLICY.fullmatch(policy):
            raise RefusedError(
                f"config: {policy[:80]!r} is no policy: write NONE, a number of commits, a duration such as P10D, or an instant"
            )
    text = msgspec.json.encode(msgspec.structs.replace(parsed, type="")).decode()
    if len(text) > _SIZE_LIMIT:
        raise RefusedError(f"config: {len(text)} characters of JSON; at most {_SIZE_LIMIT} are kept")
    for each in parsed.per_ref_cutoff_policies or ():  # behind the size: a long one takes long to compile
        _check_pattern(each.reference_name_pattern)
    return text


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as fault:
        raise RefusedError(f"config: {pattern[:80]!r} is no regular expression: {fault}") from None


def _check_type(kind: object) -> None:
    if kind != _TYPE:
        raise RefusedError(f"a repository has no configuration of the type {str(kind)[:80]!r}: {_TYPE} is the one there is")


def _check_right(session: NessieSession, privilege: Privilege) -> None:
    definition = session.definition
    on, reference = Securable(kind=SecurableKind.CATALOG, catalog=definition.name), reference_of(None, definition)
    is_held = session.decisions is None or session.decisions.allows(privilege, on, reference)
    current_trail().note_check(privilege, f"{session.call.path['realm']}/{definition.name}", is_held=is_held)
    if not is_held:
        raise ForbiddenError.lacking(privilege, on, reference)
