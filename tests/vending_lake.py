"""A lake in a bucket whose server gives clients credentials, and a client of the bucket that has nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pyarrow as pa
import pyarrow.fs
import requests
from botocore.config import Config
from botocore.exceptions import ClientError
from pyiceberg.catalog.rest import RestCatalog

from guarded_realms import GuardedRealm, guarding_server, seconds_until
from headwater import open_store
from headwater.catalogs import Catalog
from servers.s3 import S3_LOGIN
from servers.seaweedfs import ROLE, seaweedfs_server

BUCKET = "lake"
ROWS = pa.table({"id": [1, 2], "city": ["Bern", "Graz"]})
DONE = "done"
_ASKING = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_SECONDS = 30


class VendedBucket:
    """The bucket as somebody reaches it with the credentials of an answer. Deeds return DONE, or the code of the refusal."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._client = botocore.session.Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=config["s3.endpoint"],
            aws_access_key_id=config["s3.access-key-id"],
            aws_secret_access_key=config["s3.secret-access-key"],
            aws_session_token=config["s3.session-token"],
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def read(self, key: str) -> str:
        return self._deed("get_object", Key=key)

    def write(self, key: str) -> str:
        return self._deed("put_object", Key=key, Body=b"text")

    def begin_upload(self, key: str) -> str:
        return self._deed("create_multipart_upload", Key=key)

    def delete(self, key: str) -> str:
        return self._deed("delete_object", Key=key)

    def copy(self, source: str, key: str) -> str:
        return self._deed("copy_object", Key=key, CopySource={"Bucket": BUCKET, "Key": source})

    def list(self, prefix: str) -> str:
        return self._deed("list_objects_v2", Prefix=prefix)

    def _deed(self, name: str, **arguments: Any) -> str:
        try:
            getattr(self._client, name)(Bucket=BUCKET, **arguments)
        except ClientError as fault:
            return str(fault.response["Error"]["Code"])
        return DONE


@dataclass(frozen=True)
class VendingLake:
    """The catalog ``acme/lake`` with ``sales.orders`` and, right beside it, ``hidden.orders2``. The reader may read ``sales``."""

    url: str
    endpoint: str
    catalog: Catalog
    audit_file: Path
    log: Path
    root: str
    reader: str

    def client(self, credential: str, **further: str) -> RestCatalog:
        """pyiceberg without a login for the bucket."""
        return RestCatalog(
            "lake",
            uri=f"{self.url}/iceberg",
            warehouse="acme/lake",
            credential=credential,
            **{"oauth2-server-uri": f"{self.url}/iceberg/v1/oauth/tokens"},
            **further,
        )

    def token(self, credential: str) -> str:
        client_id, _, secret = credential.partition(":")
        fields = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        answer = requests.post(f"{self.url}/iceberg/v1/oauth/tokens", data=fields, timeout=_SECONDS)
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def get(self, credential: str, path: str, *, prefix: str = "acme~lake", **headers: str) -> requests.Response:
        return requests.get(
            f"{self.url}/iceberg/v1/{prefix}/{path}",
            headers={"Authorization": f"Bearer {self.token(credential)}", **_ASKING, **headers},
            timeout=_SECONDS,
        )

    def bucket(self, credential: str, path: str = "namespaces/sales/tables/orders", **where: str) -> VendedBucket:
        """The bucket as whoever loads a table reaches it."""
        answer = self.get(credential, path, **where)
        assert answer.status_code == 200, answer.text
        [part] = answer.json()["storage-credentials"]
        return VendedBucket(part["config"])


def admin_files(endpoint: str) -> pyarrow.fs.S3FileSystem:
    """The bucket's owner."""
    return pyarrow.fs.S3FileSystem(
        access_key=S3_LOGIN["access-key-id"],
        secret_key=S3_LOGIN["secret-access-key"],
        region="us-east-1",
        endpoint_override=endpoint,
        allow_bucket_creation=True,
    )


@contextmanager
def vending_lake(folder: Path, *, session: str, send_endpoint: bool = True) -> Iterator[VendingLake]:
    """Start a storage and a server, and make the lake.

    session       the longest life of credentials that the storage gives
    send_endpoint   whether clients are sent the storage's address
    """
    with ExitStack() as stack:
        endpoint = stack.enter_context(seaweedfs_server(session=session))
        admin_files(endpoint).create_dir(BUCKET)
        storages = folder / "storages.json"
        entry = {
            "location": f"s3://{BUCKET}",
            "endpoint": endpoint,
            "region": "us-east-1",
            "send-endpoint": send_endpoint,
            **S3_LOGIN,
        }
        storages.write_text(json.dumps({"storages": [entry | {"client-role": {"arn": ROLE}}]}))
        store_url = f"sqlite:///{folder}/store.db"
        store = stack.enter_context(open_store(store_url))
        realm = GuardedRealm(store)
        root = realm.create()
        catalog = realm.create_catalog("lake", f"s3://{BUCKET}/acme")
        reader = realm.create_reader("reader", "lake", "sales")
        url = stack.enter_context(guarding_server(store_url, folder / "server", storage_file=storages))
        lake = VendingLake(
            url, endpoint, catalog, folder / "server" / "audit.jsonl", folder / "server" / "server.log", root, reader
        )
        client = lake.client(root, **({} if send_endpoint else {"s3.endpoint": endpoint}))
        for namespace, name, place in (("sales", "orders", "t"), ("hidden", "orders2", "t2")):
            client.create_namespace(namespace)
            client.create_table(f"{namespace}.{name}", ROWS.schema, location=f"s3://{BUCKET}/acme/{place}").append(ROWS)
        seconds_until(lambda: lake.get(reader, "namespaces").status_code == 200)
        yield lake
