"""The form of a catalog's connection: what a workload mounts, with ready files for engines."""

from __future__ import annotations

import hashlib
import json
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from headwater.realms import Credentials, CredentialsForm, read_credentials, told_client_id, told_credential

_MOUNT = "/iceberg"
_TOKENS = "/v1/oauth/tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionForm(CredentialsForm):
    """What a workload mounts to reach a catalog: where it is, as whom, and the ready files of pyiceberg and Spark.

    uri           of the server, with or without ``/iceberg``
    secret_name   of the Secret; empty: made from the name of the Catalog
    """

    catalog: str
    uri: str
    secret_name: str = ""

    @property
    def is_followed(self) -> bool:
        return True

    def content(self, realm_id: str, credentials: Credentials) -> dict[str, str]:
        """The fields that are stored; those with a dot are files."""
        uri = self.uri if self.uri.endswith(_MOUNT) else self.uri + _MOUNT
        known = {
            "uri": uri,
            "warehouse": f"{realm_id}/{self.catalog}",
            "credential": told_credential(realm_id, credentials),
            "oauth2-server-uri": uri + _TOKENS,
        }
        return {
            **known,
            "client-id": told_client_id(realm_id, credentials.client_id),
            "client-secret": credentials.client_secret,
            ".pyiceberg.yaml": yaml.safe_dump({"catalog": {self._engine_name: {"type": "rest", **known}}}, sort_keys=False),
            "spark-defaults.conf": self._spark(known),
        }

    def credentials(self, realm_id: str, content: Mapping[str, Any]) -> Credentials | None:
        return read_credentials(realm_id, content.get("client-id"), content.get("client-secret"))

    def address_digest(self, realm_id: str) -> str:
        """A digest of all that is stored beside the credentials."""
        text = json.dumps(self.content(realm_id, Credentials("", "")), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def _engine_name(self) -> str:
        """What the catalog is called inside an engine: its own name, where that is one for SQL and for Python."""
        name = re.sub(r"[.-]", "_", self.catalog)
        return name if name.isidentifier() and not keyword.iskeyword(name) else "lake"

    def _spark(self, known: Mapping[str, str]) -> str:
        prefix = f"spark.sql.catalog.{self._engine_name}"
        lines = {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            # Spark shows its configuration to everybody who may see its page, and by itself hides no `credential`
            "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|credential",
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "rest",
            **{f"{prefix}.{name}": value for name, value in known.items()},
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())
