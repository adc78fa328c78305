"""Deletion of single objects on S3, by their keys alone.

pyarrow's client looks at an object before it deletes it, and afterwards stores an empty object in the place of its folder, which needs
the right to write and stays for ever (apache/arrow#36275: it has no option for that).
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from typing import Any, Final

from headwater.extras import missing_extra
from headwater.iceberg.storage_options import StorageOptions

_ATTEMPTS: Final = 3
_CONNECTIONS: Final = 16
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
_MOST_CLIENTS: Final = 64
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_MISSING: Final = ("NoSuchKey", "NoSuchBucket", "404")
_FORBIDDEN: Final = 403

_lock = threading.Lock()
_clients: OrderedDict[tuple[object, ...], Any] = OrderedDict()


def delete_object(path: str, options: StorageOptions | None, *, region: str) -> None:
    """Delete the object ``bucket/key`` by one request. One that is missing counts as deleted: S3 does not report it.

    options       how the storage is reached; None: as the environment of the process says
    raises        FileNotFoundError for a bucket that is missing; PermissionError; OSError with what the storage said; RefusedError where
                  botocore is missing
    """
    bucket, _, key = path.partition("/")
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ModuleNotFoundError as absent:
        raise missing_extra(absent) or absent from absent
    try:
        _client(options, region).delete_object(Bucket=bucket, Key=key)
    except ClientError as fault:  # no cause: it may hold what was sent
        text = _shown(options, str(fault))
        if str(fault.response.get("Error", {}).get("Code")) in _MISSING:
            raise FileNotFoundError(errno.ENOENT, text, path) from None
        if fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == _FORBIDDEN:
            raise PermissionError(text) from None
        raise OSError(text) from None
    except BotoCoreError as fault:
        raise OSError(_shown(options, str(fault))) from None


def _shown(options: StorageOptions | None, text: str) -> str:
    return text if options is None else options.without_secrets(text)


def _client(options: StorageOptions | None, region: str) -> Any:
    """A client, kept: making one takes some 100 ms. Under the lock, for sessions are one thread's."""
    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    key = (options, region, settings)
    with _lock:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = _new_client(options, region)
            while len(_clients) > _MOST_CLIENTS:
                _clients.popitem(last=False)
        return client


def _new_client(options: StorageOptions | None, region: str) -> Any:
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.session import Session

    session = Session()
    if options is not None and options.role_arn:
        _assume_role(session, options, region)
    is_path_style = any(os.environ.get(name) for name in _ENDPOINTS) if options is None else options.is_path_style
    login = {} if options is None or options.role_arn else _login(options)
    return session.create_client(
        "s3",
        region_name=region,
        endpoint_url=options.endpoint or None if options is not None else None,
        verify=options.ca_file or None if options is not None else None,
        **login,
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            max_pool_connections=_CONNECTIONS,
            s3={"addressing_style": "path" if is_path_style else "auto"},
            signature_version=UNSIGNED if options is not None and options.anonymous else None,
        ),
    )


def _login(options: StorageOptions) -> dict[str, str | None]:
    return {
        "aws_access_key_id": options.access_key_id or None,
        "aws_secret_access_key": options.secret_access_key or None,
        "aws_session_token": options.session_token or None,
    }


def _assume_role(session: Any, options: StorageOptions, region: str) -> None:
    """Let a session take on the options' role, by their own credentials or those of the environment, again before each expiry."""
    from botocore.credentials import AssumeRoleCredentialFetcher, Credentials, DeferredRefreshableCredentials

    source = (
        Credentials(options.access_key_id, options.secret_access_key, options.session_token or None)
        if options.access_key_id
        else session.get_credentials()
    )
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=lambda service, **login: session.create_client(service, region_name=region, **login),
        source_credentials=source,
        role_arn=options.role_arn,
        extra_args={"RoleSessionName": "headwater"} | ({"ExternalId": options.external_id} if options.external_id else {}),
    )
    session._credentials = DeferredRefreshableCredentials(method="assume-role", refresh_using=fetcher.fetch_credentials)


def _after_fork() -> None:
    """A child must not share the connections of its parent."""
    global _lock  # noqa: PLW0603  a thread that the child does not have may have held it
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_after_fork)
