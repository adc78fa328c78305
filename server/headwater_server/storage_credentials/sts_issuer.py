"""Credentials of S3 from a token service: AssumeRole, with a policy for the places of one table."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime
from typing import Any, Final

from headwater.errors import RefusedError, UnavailableError
from headwater.extras import missing_extra
from headwater.iceberg import StorageOptions
from headwater_server.storage_credentials.session_policy import session_policy
from headwater_server.storage_credentials.storage_grant import IssuedCredentials, RoleRefusedError, StorageGrant

_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 4
_ATTEMPTS: Final = 2
_CONNECTIONS: Final = 10
_MOST_CLIENTS: Final = 64
_ANY_REGION: Final = "us-east-1"
"""For servers of S3's protocol that have no regions: a request is signed for one."""
_OF_POLICY: Final = frozenset({"MalformedPolicyDocument", "PackedPolicyTooLarge", "PackedPolicyTooLargeException"})
"""Refusals of a policy, and not of the role: they concern one table alone."""
_SERVER_FAULT: Final = 500
_OF_LOAD: Final = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "SlowDown"})


def check_botocore() -> None:
    """Check that botocore is there; raises RefusedError that says how it is installed."""
    try:
        import botocore.session  # noqa: F401  # here alone, and late: it takes long, and most servers give no credentials
    except ModuleNotFoundError as absent:
        raise missing_extra(absent) or absent from absent


class StsIssuer:
    """Takes on roles by the server's own credentials for a storage, or by those of the environment. Thread-safe.

    A call ends within some 15 seconds, whatever the token service does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: OrderedDict[StorageOptions, Any] = OrderedDict()

    def issue(self, options: StorageOptions, grant: StorageGrant) -> IssuedCredentials:
        """Take on the options' role for what is granted; raises as ``CredentialIssuer.issue`` does, with no credential in its text."""
        role = options.client_role
        assert role is not None, "options without a role for clients"
        policy = session_policy(grant, partition=role.partition)
        check_botocore()
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        wish = {"RoleArn": role.arn, "RoleSessionName": grant.who, "Policy": policy, "DurationSeconds": role.lifetime_seconds}
        if role.external_id:
            wish["ExternalId"] = role.external_id
        try:
            made = self._client(options).assume_role(**wish)["Credentials"]
            return _as_credentials(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"], made["Expiration"])
        except ClientError as fault:  # no cause, here and below: a driver may tell what it sent
            code = str(fault.response.get("Error", {}).get("Code", "none"))
            told = f"the token service answered {options.without_secrets(code)!r} to AssumeRole of {role.arn}"
            if code in _OF_POLICY:
                raise RefusedError(f"{told} with a policy for {', '.join(grant.places)}") from None
            status = fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode", _SERVER_FAULT)
            if status >= _SERVER_FAULT or code in _OF_LOAD:
                raise UnavailableError(told) from None
            raise RoleRefusedError(f"{told}: look at the role, and at whom it trusts") from None
        except BotoCoreError as fault:
            raise UnavailableError(f"AssumeRole of {role.arn} failed: {options.without_secrets(str(fault))}") from None
        except (ResponseParserError, KeyError, TypeError, AttributeError):  # the first tells the whole answer
            raise UnavailableError(f"the token service gave no credentials for {role.arn} in its answer") from None

    def _client(self, options: StorageOptions) -> Any:
        """A client of the token service, kept: making one takes some 100 ms. Under the lock, for sessions are one thread's."""
        with self._lock:
            client = self._clients.get(options)
            if client is None:
                client = self._clients[options] = _sts_client(options)
                while len(self._clients) > _MOST_CLIENTS:
                    self._clients.popitem(last=False)
            return client


def _sts_client(options: StorageOptions) -> Any:
    from botocore.config import Config
    from botocore.session import Session

    role = options.client_role
    assert role is not None, "options without a role for clients"
    return Session().create_client(
        "sts",
        region_name=options.region or (_ANY_REGION if options.endpoint or role.sts_endpoint else None),
        endpoint_url=role.sts_endpoint or options.endpoint or None,
        verify=options.ca_file or None,
        aws_access_key_id=options.access_key_id or None,
        aws_secret_access_key=options.secret_access_key or None,
        aws_session_token=options.session_token or None,
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            max_pool_connections=_CONNECTIONS,
        ),
    )


def _as_credentials(key: str, secret: str, token: str, expiration: datetime) -> IssuedCredentials:
    expires_ms = int(expiration.timestamp() * 1000)
    return IssuedCredentials(
        {
            "s3.access-key-id": key,
            "s3.secret-access-key": secret,
            "s3.session-token": token,
            "s3.session-token-expires-at-ms": str(expires_ms),
        },
        expires_ms,
    )
