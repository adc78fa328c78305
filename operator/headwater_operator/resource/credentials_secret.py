"""Root credentials in a Secret: written once before the realm is bootstrapped, rotated when asked for, removed with the realm.

The Secret has no owner: it stays when its Realm resource is deleted under Retain. Values are never logged, and never in an error.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from headwater.errors import CorruptionError, RefusedError, SwapConflictError, UnavailableError
from headwater.realms import Credentials
from headwater.store import RealmId
from headwater_operator.kube import KubeApi, resource_path

MANAGED_BY = "app.kubernetes.io/managed-by"
REALM_LABEL = "headwater.dev/realm"
REALM_ID = "headwater.dev/realm-id"
ROTATION = "headwater.dev/rotation"
OPERATOR = "headwater-operator"

_ENDING = "-root-credentials"
_NAME_LIMIT = 253
_LABEL_LIMIT = 63
_TRIES = 5


class ForeignSecretError(RefusedError):
    """A foreign Secret has the name. The operator has no right to watch Secrets, so no event reports its deletion."""


def secret_name(realm: str) -> str:
    """The name of a Realm resource's Secret, in the same namespace. If the name has no room for the suffix, a digest replaces its end."""
    name = f"{realm}{_ENDING}"
    if len(name) <= _NAME_LIMIT:
        return name
    digest = hashlib.blake2b(realm.encode(), digest_size=8).hexdigest()
    return f"{realm[: _NAME_LIMIT - len(_ENDING) - len(digest) - 1].rstrip('-.')}-{digest}{_ENDING}"


class SecretCredentials:
    """The credentials sink of one Realm resource. The Secret's content is authoritative; only a rotation ever overwrites it.

    namespace, name   those of the Realm resource
    """

    def __init__(self, api: KubeApi, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._realm = name
        self._path = resource_path("Secret", namespace, secret_name(name))

    def write_credentials(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        """Create the Secret; an existing Secret of this realm is taken as it is.

        raises        ForeignSecretError when another Secret has this name; CorruptionError when ours holds no credentials
        """
        for _ in range(_TRIES):
            try:
                self._create(realm_id, credentials, {})
                return credentials
            except SwapConflictError:
                kept = self._api.find_resource(self._path)
            if kept is not None:
                return self._read(self._owned(kept, realm_id))
        raise UnavailableError(f"{self.place(realm_id)} comes and goes: somebody else writes it too, trying again later")

    def rotate_credentials(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        """Replace the credentials, once for each token. A Secret of ours without credentials is filled, too.

        returns       the stored credentials: the first ones that were given with this token
        raises        ForeignSecretError when another Secret has this name
        """
        for _ in range(_TRIES):
            secret = self._api.find_resource(self._path)
            try:
                if secret is None:
                    self._create(realm_id, credentials, {ROTATION: token})
                    return credentials
                if _annotations(self._owned(secret, realm_id)).get(ROTATION) == token and (kept := _credentials(secret)):
                    return kept
                self._api.replace_resource(self._path, _rotated(secret, credentials, token))
                return credentials
            except SwapConflictError:
                continue  # it was created, changed or removed after it was read
        raise UnavailableError(f"{self.place(realm_id)} changes all the time: somebody else writes it too, trying again later")

    def remove_credentials(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        """Delete the Secret of this realm. A foreign Secret is left alone.

        confirm       called each time the Secret has been found; if it raises, the Secret stays
        """
        for _ in range(_TRIES):
            secret = self._api.find_resource(self._path)
            if secret is None or not self._is_owned(secret, realm_id):
                return
            confirm()
            try:
                self._api.delete_resource(self._path, uid=secret["metadata"].get("uid"))
            except SwapConflictError:
                continue  # it is another one by now: check whose
            return
        raise UnavailableError(f"{self.place(realm_id)} changes all the time: somebody else writes it too, trying again later")

    def exists(self, realm_id: RealmId) -> bool:
        """Whether this realm's Secret exists, with an id and a secret in it."""
        secret = self._api.find_resource(self._path)
        if secret is None or not self._is_owned(secret, realm_id):
            return False
        return _credentials(secret) is not None

    def place(self, realm_id: RealmId) -> str:
        """Describe where a person finds them."""
        return f"Secret {self._namespace}/{secret_name(self._realm)}"

    def _create(self, realm_id: RealmId, credentials: Credentials, annotations: Mapping[str, str]) -> None:
        labels = {MANAGED_BY: OPERATOR}
        if len(self._realm) <= _LABEL_LIMIT:
            labels[REALM_LABEL] = self._realm
        metadata = {
            "name": secret_name(self._realm),
            "namespace": self._namespace,
            "labels": labels,
            "annotations": {REALM_ID: realm_id, **annotations},
        }
        body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
        data = {"realm": _encoded(realm_id), **_data(credentials)}
        self._api.create_resource(resource_path("Secret", self._namespace, None), {**body, "data": data})

    def _owned(self, secret: dict[str, Any], realm_id: RealmId) -> dict[str, Any]:
        if self._is_owned(secret, realm_id):
            return secret
        raise ForeignSecretError(
            f"{self.place(realm_id)} is not that of realm {realm_id!r}: a Secret of the operator has the label {MANAGED_BY}: {OPERATOR} "
            f"and the annotation {REALM_ID}: {realm_id}; move what is there to another name, or delete it"
        )

    def _is_owned(self, secret: dict[str, Any], realm_id: RealmId) -> bool:
        labels = secret["metadata"].get("labels") or {}
        return labels.get(MANAGED_BY) == OPERATOR and _annotations(secret).get(REALM_ID) == realm_id

    def _read(self, secret: dict[str, Any]) -> Credentials:
        kept = _credentials(secret)
        if kept is None:
            raise CorruptionError(
                f"Secret {self._namespace}/{secret_name(self._realm)} holds no clientId and clientSecret: restore it, "
                "or delete it before the realm is bootstrapped"
            )
        return kept


def _credentials(secret: dict[str, Any]) -> Credentials | None:
    """The credentials in a Secret. An error omits its cause: what cannot be decoded may be half a secret, and a traceback would
    show it.
    """
    data = secret.get("data") or {}
    try:
        kept = Credentials(_decoded(data["clientId"]), _decoded(data["clientSecret"]))
    except (KeyError, TypeError, ValueError):
        return None
    return kept if kept.client_id and kept.client_secret else None


def _rotated(secret: dict[str, Any], credentials: Credentials, token: str) -> dict[str, Any]:
    """The Secret with new credentials; additions by others stay."""
    metadata = {**secret["metadata"], "annotations": {**_annotations(secret), ROTATION: token}}
    return {**secret, "metadata": metadata, "data": {**(secret.get("data") or {}), **_data(credentials)}}


def _annotations(secret: dict[str, Any]) -> dict[str, str]:
    return secret["metadata"].get("annotations") or {}


def _data(credentials: Credentials) -> dict[str, str]:
    return {"clientId": _encoded(credentials.client_id), "clientSecret": _encoded(credentials.client_secret)}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()
