"""How storages are reached, as the owner of this process says it: endpoint, region and credentials, by location, realm and catalog.

They stand in files that the setting ``storage_file`` names, which is where a mounted Secret goes. They are read again when a file
changes. Nothing of them is ever stored, pickled or shown: neither a text nor an error has a value of theirs in it.

    {"storages": [
        {"location": "s3://lake", "endpoint": "http://seaweed:8333", "access-key-id": "…", "secret-access-key": "…"},
        {"location": "s3://lake/acme", "realm": "acme", "catalog": "lake", "region": "eu-central-1", "role-arn": "…",
         "client-role": {"arn": "…"}}]}

The entry whose location is the longest around a file counts; of those with the same location, one for the catalog goes before one
for the realm, and that before one for all. A file in none of them is reached as the environment of the process says.

What clients of a server are given stands apart from what the server has itself: nothing of its own is ever handed on.
"""

from __future__ import annotations

import re
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog

from headwater.errors import RefusedError
from headwater.iceberg.location import comparable_location, is_within, plain_location
from headwater.typed_values import json_decoder

_log = structlog.get_logger()

_AREAS = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs"}
"""Of each scheme, the storage whose options it takes. Local files take none."""
_COMMON = ("location", "realm", "catalog", "endpoint", "client_endpoint", "send_endpoint", "anonymous")
_TAKEN = {
    "s3": (
        "region",
        "path_style",
        "access_key_id",
        "secret_access_key",
        "session_token",
        "role_arn",
        "external_id",
        "ca_file",
        "client_role",
        "client_key",
    ),
    "gs": ("service_account",),
    "abfs": ("account_key", "sas_token", "tenant_id", "client_id", "client_secret"),
}
_SECRETS = ("access_key_id", "secret_access_key", "session_token", "external_id", "account_key", "sas_token", "client_secret")
_OF_CLIENTS = ("client_role", "client_key")
_LIFETIMES = range(900, 12 * 3600 + 1)
"""What AWS takes, in seconds."""
_SHORTEST_ARN = 20
_MASK = "***"
_LONGEST = 300
_MAX_FILE_BYTES = 1 << 20


class _UnshownStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Options with secrets among them: neither printed nor pickled."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []

    def __reduce__(self) -> Any:
        raise TypeError("options of a storage are not sent elsewhere: they may hold credentials")


class ClientRole(_UnshownStruct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A role that is taken on for each client, for the places of one table: it gets credentials that end.

    sts_endpoint  where AssumeRole is called; empty: at the storage's endpoint, or the cloud's own
    """

    arn: str
    external_id: str = ""
    sts_endpoint: str = ""
    lifetime_seconds: int = 3600

    @property
    def partition(self) -> str:
        """The part of the cloud that names of its storage begin with, such as ``aws`` or ``aws-cn``."""
        return self.arn.split(":")[1]

    def faults(self) -> Iterator[str]:
        if not re.fullmatch(r"arn:[\w-]+:[^\s*?]+", self.arn) or len(self.arn) < _SHORTEST_ARN:
            yield "client-role has an arn that is none such as arn:aws:iam::123456789012:role/lake"
        if self.sts_endpoint and not _is_endpoint(self.sts_endpoint):
            yield "client-role has an sts-endpoint that is no URL such as https://sts.example.org:9000, without a login or a path"
        if self.lifetime_seconds not in _LIFETIMES:
            yield f"client-role has a lifetime-seconds that is not from {_LIFETIMES[0]} to {_LIFETIMES[-1]}"


class ClientKey(_UnshownStruct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Credentials that are handed to whoever may read a table there: the same ones to all, as they are."""

    access_key_id: str
    secret_access_key: str
    session_token: str = ""


class StorageOptions(_UnshownStruct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How the storage of a location is reached. Which fields a scheme takes is checked by ``option_faults``.

    realm, catalog    whose tables it is for; empty: everybody's
    endpoint          an ``http`` or ``https`` URL; empty: the cloud's own
    client_endpoint   the address of the same storage for clients, where that differs
    send_endpoint     whether clients are sent the address; False: they have it from elsewhere
    path_style        whether the bucket stands in the path of a URL; None: if there is an endpoint
    role_arn          a role of AWS to take on, by credentials of the environment
    service_account   an account of Google to act as, by credentials of the environment
    ca_file           the certificates to trust, a file in PEM
    client_role       by which clients get credentials for one table
    client_key        credentials for clients; without either, clients have their own
    """

    location: str
    realm: str = ""
    catalog: str = ""
    endpoint: str = ""
    client_endpoint: str = ""
    send_endpoint: bool = True
    anonymous: bool = False
    region: str = ""
    path_style: bool | None = None
    access_key_id: str = ""
    secret_access_key: str = ""
    session_token: str = ""
    role_arn: str = ""
    external_id: str = ""
    ca_file: str = ""
    service_account: str = ""
    account_key: str = ""
    sas_token: str = ""
    tenant_id: str = ""
    client_id: str = ""
    client_secret: str = ""
    client_role: ClientRole | None = None
    client_key: ClientKey | None = None

    def __repr__(self) -> str:
        whose = "".join(f", {name}={value!r}" for name, value in (("realm", self.realm), ("catalog", self.catalog)) if value)
        return f"StorageOptions({self.location!r}{whose})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("location", self.location)]

    @property
    def area(self) -> str:
        """The storage: ``s3``, ``gs`` or ``abfs``; empty for a scheme that takes no options."""
        return _AREAS.get(self.location.partition("://")[0].lower(), "")

    @property
    def is_path_style(self) -> bool:
        return bool(self.endpoint) if self.path_style is None else self.path_style

    def option_faults(self) -> list[str]:
        """Everything that is wrong with them, each with what would be right; never a value of a credential."""
        faults = [f"its {fault}" for fault in self._faults_of_values()]
        if not self.area:
            return [*faults, "its location has a scheme that takes no options: s3, gs and abfss do"]
        known = {*_COMMON, *_TAKEN[self.area]}
        set_ = [
            field for field in self.__struct_fields__ if field not in known and getattr(self, field) not in ("", None, False)
        ]
        faults += [f"{_shown(field)} is nothing that {self.area} takes" for field in set_]
        if any(field in _OF_CLIENTS for field in set_):
            faults.append("clients are given credentials for s3 alone so far, and have their own for gs and abfss")
        if bool(self.access_key_id) != bool(self.secret_access_key):
            faults.append("access-key-id and secret-access-key go together")
        if self.session_token and not self.access_key_id:
            faults.append("session-token needs access-key-id and secret-access-key")
        if self.client_secret and not (self.client_id and self.tenant_id):
            faults.append("client-secret needs client-id and tenant-id")
        if self.account_key and self.sas_token:
            faults.append("account-key and sas-token exclude each other")
        if self.client_role is not None and self.client_key is not None:
            faults.append("client-role and client-key exclude each other")
        if self.anonymous and any(getattr(self, field) for field in (*_SECRETS, "role_arn", "service_account", *_OF_CLIENTS)):
            faults.append("anonymous excludes credentials")
        if self.path_style and not self.endpoint:
            faults.append("path-style needs an endpoint")
        return faults

    def _faults_of_values(self) -> Iterator[str]:
        try:
            plain_location(self.location)
        except RefusedError as fault:
            yield f"location is none: {fault}"
        if self.catalog and not self.realm:
            yield "catalog needs a realm: names of catalogs are their realm's"
        if self.client_role is not None:
            yield from self.client_role.faults()
        if self.client_key is not None:
            if not (self.client_key.access_key_id and self.client_key.secret_access_key):
                yield "client-key needs access-key-id and secret-access-key"
            elif self.client_key.access_key_id == self.access_key_id:
                yield "client-key is the server's own: give clients one that may do less"
        for field in ("endpoint", "client_endpoint"):
            if getattr(self, field) and not _is_endpoint(getattr(self, field)):
                yield f"{_shown(field)} is no URL such as https://storage.example.org:9000, without a login or a path"

    def is_for(self, location: str, *, realm: str, catalog: str) -> bool:
        return self.realm in ("", realm) and self.catalog in ("", catalog) and is_within(location, self.location)

    def without_secrets(self, text: str) -> str:
        """The first line of a text, for messages, without the credentials that are in these options."""
        line = text.partition("\n")[0]
        for holder in (self, self.client_role, self.client_key):
            for secret in filter(None, (getattr(holder, field, "") for field in _SECRETS)):
                line = line.replace(secret, _MASK)
        return line[:_LONGEST]

    @property
    def gives_credentials(self) -> bool:
        """Whether clients are given credentials for what lies there."""
        return self.client_role is not None or self.client_key is not None

    def client_config(self) -> dict[str, str]:
        """What clients may know, under the names by which they know it: the address and its spelling, never a credential."""
        endpoint = (self.client_endpoint or self.endpoint) if self.send_endpoint else ""
        if self.area == "gs":
            return {"gcs.service.host": endpoint} if endpoint else {}
        if self.area != "s3":
            return {}
        config: dict[str, str] = {}
        if endpoint:
            style = {True: "true", False: "false"}
            config |= {
                "s3.endpoint": endpoint,
                "s3.path-style-access": style[self.is_path_style],
                "s3.force-virtual-addressing": style[not self.is_path_style],
            }
        if self.region:
            config |= {"s3.region": self.region, "client.region": self.region}
        return config


def _shown(field: str) -> str:
    return field.replace("_", "-")


def _is_endpoint(text: str) -> bool:
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return False
    is_plain = url.path in ("", "/") and not (url.query or url.fragment or url.username or url.password)
    return url.scheme in ("http", "https") and bool(url.hostname) and is_plain and not re.search(r"\s", text)


class _OptionsDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    storages: list[StorageOptions]


_DOCUMENT = json_decoder(_OptionsDocument)


@dataclass(frozen=True, slots=True)
class _ReadOptions:
    """What was read, and by what it is seen that the files have changed."""

    signature: tuple[object, ...]
    options: tuple[StorageOptions, ...]


class StorageFile:
    """The options in a file, or in all files ``*.json`` of a folder, read again when they change. Thread-safe.

    A change that cannot be read is logged, and what was read before stays in force: a Secret may be mounted while it is wrong.

    path          empty: there are no options
    raises        RefusedError, on the first use, for a file that is missing or wrong
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._read: _ReadOptions | None = None
        self._refused: tuple[object, ...] | None = None

    def __reduce__(self) -> tuple[type[StorageFile], tuple[str]]:
        """Another process reads the file itself, where it has one of that path: nothing of it is sent there."""
        return StorageFile, (self._path,)

    def options_for(self, location: str, *, realm: str, catalog: str) -> StorageOptions | None:
        """Find the options for a file at a canonical location; None: as the environment of the process says."""
        if not self._path:
            return None
        return closest_options(self.current(), location, realm=realm, catalog=catalog)

    def current(self) -> tuple[StorageOptions, ...]:
        """The options that are in force."""
        if not self._path:
            return ()
        with self._lock:
            signature = _signature(self._path)
            if self._read is not None and signature in (self._read.signature, self._refused):
                return self._read.options
            try:
                self._read = _ReadOptions(signature, read_storage_options(self._path))
            except RefusedError as fault:
                if self._read is None:
                    raise
                self._refused = signature
                _log.error("options of storages were not read again: those from before stay in force", fault=str(fault))
            return self._read.options


def closest_options(options: Iterable[StorageOptions], location: str, *, realm: str, catalog: str) -> StorageOptions | None:
    """Find those options that count for a file at a canonical location; None: none is for it."""
    fitting = [each for each in options if each.is_for(location, realm=realm, catalog=catalog)]
    return max(fitting, key=lambda each: (len(each.location), bool(each.catalog), bool(each.realm)), default=None)


def read_storage_options(path: str) -> tuple[StorageOptions, ...]:
    """Read the options in a file, or in the files of a folder.

    raises        RefusedError that names the file, the entry and the field, and never a value of a credential
    """
    options: list[StorageOptions] = []
    for file in _files_of(path):
        try:
            options += _DOCUMENT.decode(_read_small(file)).storages
        except OSError as fault:
            raise RefusedError(f"options of storages: {file} cannot be read: {fault.strerror or fault}") from None
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
        ) as fault:  # their texts name fields and bytes, no values
            told = str(fault) if isinstance(fault, msgspec.DecodeError) else "it is no text in UTF-8"
            raise RefusedError(
                f'options of storages: {file} is not {{"storages": [...]}} as the docs have it: {told}'
            ) from None
    faults = [f"{entry!r}: {fault}" for entry in options for fault in entry.option_faults()]
    if not faults and (doubled := _doubled(options)):
        faults.append(f"{doubled!r} stands there twice")
    if faults:
        raise RefusedError(f"options of storages in {path}: {'; '.join(faults)}")
    return tuple(options)


def _read_small(file: Path) -> bytes:
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for a writer
        raise OSError("no regular file")
    if status.st_size > _MAX_FILE_BYTES:
        raise OSError(f"{status.st_size} bytes, which is too large for options")
    return file.read_bytes()


def _files_of(path: str) -> list[Path]:
    """The files of a folder, or the one file. Of a mounted Secret, what begins with a dot is its former and its next content."""
    place = Path(path)
    if not place.is_dir():
        return [place]
    return sorted(file for file in place.glob("*.json") if not file.name.startswith("."))


def _signature(path: str) -> tuple[object, ...]:
    signature: list[object] = []
    for file in _files_of(path):
        try:
            status = file.stat()
        except OSError:
            signature.append(str(file))
        else:
            signature.append((str(file), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(signature)


def _doubled(options: Sequence[StorageOptions]) -> StorageOptions | None:
    known = set()
    for entry in options:
        scope = (comparable_location(entry.location), entry.realm, entry.catalog)
        if scope in known:
            return entry
        known.add(scope)
    return None
