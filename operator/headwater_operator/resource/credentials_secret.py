"""The credentials of a principal in a Secret: written before the store has their hash, rotated when asked for, removed with the principal.

The Secret has no owner: it stays when its resource is deleted under Retain. Values are never logged, and never in an error.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from headwater.errors import CorruptionError, RefusedError, SwapConflictError, UnavailableError
from headwater.realms import ROOT_PRINCIPAL, Credentials, CredentialsForm
from headwater.reconcile import ConnectionForm
from headwater.store import RealmId
from headwater_operator.kube import KubeApi, resource_path

MANAGED_BY = "app.kubernetes.io/managed-by"
REALM_LABEL = "headwater.dev/realm"
REALM_ID = "headwater.dev/realm-id"
CATALOG_LABEL = "headwater.dev/catalog"
PRINCIPAL = "headwater.dev/principal"
ROTATION = "headwater.dev/rotation"
OPERATOR = "headwater-operator"

_ENDING = "-credentials"
_CONNECTION_ENDING = "-connection"
_PLAIN = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SLUG_LIMIT = 40
_NAME_LIMIT = 253
_LABEL_LIMIT = 63
_TRIES = 5


class ForeignSecretError(RefusedError):
    """A foreign Secret has the name. The operator has no right to watch Secrets, so no event reports its deletion."""


def secret_name(realm: str, principal: str = ROOT_PRINCIPAL) -> str:
    """The name of the Secret of a principal of a Realm resource, in the same namespace; no two have the same.

    `<realm>-<principal>-credentials`, where the principal's name has no hyphen, so that the last hyphens divide it; with one
    `<realm>.<principal>.credentials`. What a name of a Secret may not have is replaced by hyphens, and a digest follows. A digest also
    replaces the end of the realm's name where the whole would be too long.
    """
    if not _PLAIN.fullmatch(principal):
        ending = f".{_slug(principal)}.{_digest(principal)}.credentials".replace("..", ".")
    else:
        ending = f".{principal}.credentials" if "-" in principal else f"-{principal}{_ENDING}"
    return _with_ending(realm, ending, digested=f"{realm}/{principal}" if principal != ROOT_PRINCIPAL else realm)


def former_secret_name(realm: str, principal: str) -> str:
    """The name under release 0.1.0: the same for `a` and `b-c` as for `a-b` and `c`. A Secret that has it keeps it."""
    if not _PLAIN.fullmatch(principal):
        principal = f"{_slug(principal)}-{_digest(principal)}".lstrip("-")
    return _with_ending(realm, f"-{principal}{_ENDING}", digested=f"{realm}/{principal}")


def _slug(principal: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", principal.lower()).strip("-")[:_SLUG_LIMIT].rstrip("-")


def connection_secret_name(catalog: str, wanted: str = "") -> str:
    """The name of the Secret of a Catalog resource's connection: `<catalog>-connection` unless another one is wanted."""
    return wanted or _with_ending(catalog, _CONNECTION_ENDING, digested=catalog)


def _with_ending(name: str, ending: str, *, digested: str) -> str:
    if len(name) + len(ending) <= _NAME_LIMIT:
        return name + ending
    digest = _digest(digested)
    return f"{name[: _NAME_LIMIT - len(ending) - len(digest) - 1].rstrip('-.')}-{digest}{ending}"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class SecretCredentials:
    """The credentials sink of one Realm or Catalog resource. The Secret's content is authoritative; only a rotation ever overwrites
    the credentials in it.

    namespace, name   those of the resource
    form              by whose credentials the Secret holds, and what else: default the root of a Realm
    """

    def __init__(self, api: KubeApi, namespace: str, name: str, form: CredentialsForm | None = None) -> None:
        self._api = api
        self._namespace = namespace
        self._resource = name
        self._form = form or CredentialsForm()
        self._former_name = ""
        if isinstance(self._form, ConnectionForm):
            self._label, self._name = CATALOG_LABEL, connection_secret_name(name, self._form.secret_name)
        else:
            self._label, self._name = REALM_LABEL, secret_name(name, self._form.principal)
            if self._form.principal != ROOT_PRINCIPAL:
                self._former_name = former_secret_name(name, self._form.principal)

    @property
    def name(self) -> str:
        """The name of the Secret; once it was looked for, the former one where it still has that."""
        return self._name

    @property
    def _path(self) -> str:
        return resource_path("Secret", self._namespace, self._name)

    def _find(self, realm_id: RealmId) -> dict[str, Any] | None:
        """The Secret under its name, or our own one under the name that an earlier release gave it."""
        found = self._api.find_resource(self._path)
        if found is not None or self._former_name in ("", self._name):
            return found
        former = self._api.find_resource(resource_path("Secret", self._namespace, self._former_name))
        if former is None or not self._is_owned(former, realm_id):
            return None
        self._name = self._former_name
        return former

    @property
    def principal(self) -> str:
        """Whose credentials it has."""
        return self._form.principal

    def of_principal(self, principal: str) -> SecretCredentials:
        """The Secret of another principal of the realm."""
        return SecretCredentials(self._api, self._namespace, self._resource, CredentialsForm(principal))

    def of_connection(self, form: CredentialsForm) -> SecretCredentials:
        """The Secret of a catalog's connection; the resource is the Catalog."""
        return SecretCredentials(self._api, self._namespace, self._resource, form)

    def write_credentials(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        """Create the Secret; an existing Secret of this realm is taken as it is.

        raises        ForeignSecretError when another Secret has this name; CorruptionError when ours holds no credentials
        """
        if self._former_name not in ("", self._name):
            self._find(realm_id)
        for _ in range(_TRIES):
            try:
                self._create(realm_id, credentials, {})
                return credentials
            except SwapConflictError:
                kept = self._api.find_resource(self._path)
            if kept is None:
                continue
            credentials = self._read(self._owned(kept, realm_id), realm_id)
            if not self._form.is_followed or self._bring_up_to_form(kept, realm_id, credentials):
                return credentials
        raise UnavailableError(f"{self.place(realm_id)} comes and goes: somebody else writes it too, trying again later")

    def rotate_credentials(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        """Replace the credentials, once for each token. A Secret of ours without credentials is filled, too.

        returns       the stored credentials: the first ones that were given with this token
        raises        ForeignSecretError when another Secret has this name
        """
        for _ in range(_TRIES):
            secret = self._find(realm_id)
            try:
                if secret is None:
                    self._create(realm_id, credentials, {ROTATION: token})
                    return credentials
                if _annotations(self._owned(secret, realm_id)).get(ROTATION) == token and (
                    kept := self._credentials(secret, realm_id)
                ):
                    return kept
                content = self._form.content(realm_id, credentials)
                self._api.replace_resource(self._path, _changed(secret, content, {ROTATION: token}))
                return credentials
            except SwapConflictError:
                continue  # it was created, changed or removed after it was read
        raise UnavailableError(f"{self.place(realm_id)} changes all the time: somebody else writes it too, trying again later")

    def remove_credentials(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        """Delete the Secret of this realm. A foreign Secret is left alone.

        confirm       called each time the Secret has been found; if it raises, the Secret stays
        """
        for _ in range(_TRIES):
            secret = self._find(realm_id)
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
        secret = self._find(realm_id)
        if secret is None or not self._is_owned(secret, realm_id):
            return False
        return self._credentials(secret, realm_id) is not None

    def place(self, realm_id: RealmId) -> str:
        """Describe where a person finds them."""
        return f"Secret {self._namespace}/{self._name}"

    def _bring_up_to_form(self, secret: dict[str, Any], realm_id: RealmId, credentials: Credentials) -> bool:
        """Write what the Secret has to have beside the credentials; False if it was changed after it was read."""
        content = self._form.content(realm_id, credentials)
        changed = _changed(secret, content, {})
        if changed["data"] == secret.get("data"):
            return True
        try:
            self._api.replace_resource(self._path, changed)
        except SwapConflictError:
            return False
        return True

    def _create(self, realm_id: RealmId, credentials: Credentials, annotations: Mapping[str, str]) -> None:
        labels = {MANAGED_BY: OPERATOR}
        if len(self._resource) <= _LABEL_LIMIT:
            labels[self._label] = self._resource
        metadata = {
            "name": self._name,
            "namespace": self._namespace,
            "labels": labels,
            "annotations": {**self._identity(realm_id), **annotations},
        }
        body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
        data = _encoded_all(self._form.content(realm_id, credentials))
        self._api.create_resource(resource_path("Secret", self._namespace, None), {**body, "data": data})

    def _identity(self, realm_id: RealmId) -> dict[str, str]:
        """The annotations that tell whose credentials it holds."""
        is_root = self._form.principal == ROOT_PRINCIPAL
        return {REALM_ID: realm_id, **({} if is_root else {PRINCIPAL: self._form.principal})}

    def _owned(self, secret: dict[str, Any], realm_id: RealmId) -> dict[str, Any]:
        if self._is_owned(secret, realm_id):
            return secret
        raise ForeignSecretError(
            f"{self.place(realm_id)} is not that of {self._whose(realm_id)}: a Secret of the operator has the label "
            f"{MANAGED_BY}: {OPERATOR} and {self._told_identity(realm_id)}; move what is there to another name, or delete it"
        )

    def _whose(self, realm_id: RealmId) -> str:
        is_root = self._form.principal == ROOT_PRINCIPAL
        return f"realm {realm_id!r}" if is_root else f"principal {self._form.principal} of realm {realm_id!r}"

    def _told_identity(self, realm_id: RealmId) -> str:
        told = " and ".join(f"{name}: {text}" for name, text in self._identity(realm_id).items())
        return f"the annotation {told}" if self._form.principal == ROOT_PRINCIPAL else f"the annotations {told}"

    def _is_owned(self, secret: dict[str, Any], realm_id: RealmId) -> bool:
        labels = secret["metadata"].get("labels") or {}
        found = {name: text for name, text in _annotations(secret).items() if name in (REALM_ID, PRINCIPAL)}
        return labels.get(MANAGED_BY) == OPERATOR and found == self._identity(realm_id)

    def _read(self, secret: dict[str, Any], realm_id: RealmId) -> Credentials:
        kept = self._credentials(secret, realm_id)
        if kept is not None:
            return kept
        if self._form.principal == ROOT_PRINCIPAL:
            advice = "holds no clientId and clientSecret: restore it, or delete it before the realm is bootstrapped"
        else:
            advice = "holds no id and secret of a client: restore it, or delete it to have new ones made"
        raise CorruptionError(f"{self.place(realm_id)} {advice}")

    def _credentials(self, secret: dict[str, Any], realm_id: RealmId) -> Credentials | None:
        return self._form.credentials(realm_id, _decoded_all(secret))


def _decoded_all(secret: dict[str, Any]) -> dict[str, str]:
    """The texts in a Secret; what cannot be decoded is left out unseen, as it may be half a secret."""
    found = {}
    for name, value in (secret.get("data") or {}).items():
        with contextlib.suppress(TypeError, ValueError):
            found[name] = base64.b64decode(value, validate=True).decode()
    return found


def _changed(secret: dict[str, Any], content: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """The Secret with another content; additions by others stay."""
    metadata = {**secret["metadata"], "annotations": {**_annotations(secret), **annotations}}
    return {**secret, "metadata": metadata, "data": {**(secret.get("data") or {}), **_encoded_all(content)}}


def _annotations(secret: dict[str, Any]) -> dict[str, str]:
    return secret["metadata"].get("annotations") or {}


def _encoded_all(content: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(text.encode()).decode() for name, text in content.items()}
