"""How each engine is configured for a catalog that `headwater serve` serves: one table for the command, README and docs/operate/server.md.

The first form of an engine is its shortest. Tests run what is printed, word for word, for every engine that is installed with them.
"""

from __future__ import annotations

import keyword
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from string import Template
from urllib.parse import quote, urlsplit

from headwater.catalogs.catalog_definition import checked_catalog_name
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store.ids import checked_realm_id

SHELL = "bash"
"""The language whose words have to be quoted."""
COMMENTS = {"go": "//", "ini": "#", "javascript": "//", "python": "#", "rust": "//", "sql": "--", "yaml": "#", SHELL: "#"}
"""How a comment begins in each language."""
ANY_WAREHOUSE = "REALM/CATALOG"
"""What is shown where no warehouse was named."""
USUAL_REGION = "us-east-1"
ANY_LOCATION = "BASE_LOCATION"
"""What is shown in place of a catalog's base location, which only a store knows."""
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?")
_MOUNT = "/iceberg"
_NESSIE_MOUNT = "/nessie"
_USUAL_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The catalog that an engine is to use.

    url           of the server, without ``/iceberg``
    warehouse     REALM/CATALOG or REALM/CATALOG@REFERENCE
    s3_endpoint   of buckets, for engines that do not take it from the server; empty: AWS's own
    s3_region     of buckets, for the same engines
    """

    url: str
    warehouse: str
    s3_endpoint: str = ""
    s3_region: str = USUAL_REGION

    @property
    def uri(self) -> str:
        """What engines call the URI of a REST catalog."""
        return self.url + _MOUNT

    @property
    def config_url(self) -> str:
        """Where the server tells clients how the warehouse is reached."""
        return f"{self.uri}/v1/config?warehouse={quote(self.warehouse, safe='/@')}"

    @property
    def token_uri(self) -> str:
        """Where the server gives tokens for credentials."""
        return f"{self.uri}/v1/oauth/tokens"

    @property
    def nessie(self) -> str:
        """Where Nessie's API of the catalog is served: clients add ``/api/v2`` or ``/api/v1``."""
        return f"{self.url}{_NESSIE_MOUNT}/{self.warehouse.partition('@')[0]}"

    @property
    def reference(self) -> str:
        """The branch or tag that clients of Nessie's API are told beside the URI."""
        return self.warehouse.partition("@")[2] or _USUAL_BRANCH

    @property
    def name(self) -> str:
        """What the catalog is called inside the engine: its own name, where that is one for SQL and for Python."""
        catalog = self.warehouse.partition("/")[2].partition("@")[0]
        name = re.sub(r"[.-]", "_", catalog)
        return name if name.isidentifier() and not keyword.iskeyword(name) and self.warehouse != ANY_WAREHOUSE else "lake"

    def words(self, language: str) -> Mapping[str, str]:
        """What stands for the variables of a form in this language."""
        words = {"uri": self.uri, "url": self.url, "warehouse": self.warehouse, "config": self.config_url, "name": self.name}
        words |= {"nessie": self.nessie, "reference": self.reference, "location": ANY_LOCATION, "s3_region": self.s3_region}
        words |= self._s3_words()
        return {name: shlex.quote(word) for name, word in words.items()} if language == SHELL else words

    def _s3_words(self) -> Mapping[str, str]:
        """The address of buckets as DuckDB and Trino are told it."""
        endpoint = urlsplit(self.s3_endpoint or f"https://s3.{self.s3_region}.amazonaws.com")
        lines = f"\ns3.endpoint={self.s3_endpoint}\ns3.path-style-access=true" if self.s3_endpoint else ""
        return {"s3_host": endpoint.netloc, "s3_ssl": str(endpoint.scheme == "https").lower(), "s3_lines": lines}


@dataclass(frozen=True, slots=True)
class ConfigForm:
    """One way to write the configuration down.

    name          what ``--form`` calls it
    language      of the text, as Markdown names it
    file          where the text goes; empty: it is run
    """

    name: str
    language: str
    text: str
    file: str = ""

    def filled(self, address: EngineAddress) -> ConfigForm:
        """Fill in the address of a catalog."""
        words = address.words(self.language)
        return replace(self, text=Template(self.text).substitute(words), file=Template(self.file).substitute(words))


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """An engine that can use a served catalog.

    needs         what has to be installed
    tried         the versions that used a server of Headwater; empty: none ever did, and the text is from the engine's documentation
    run           the month in which tests last ran these versions with what is printed
    storage       by what the engine reaches the tables' files
    """

    name: str
    title: str
    needs: str
    tried: str
    storage: str
    forms: tuple[ConfigForm, ...]
    run: str = "2026-11"

    def filled(self, address: EngineAddress) -> EngineConfig:
        """Fill the address of a catalog into every form."""
        return replace(self, forms=tuple(form.filled(address) for form in self.forms))

    def in_form(self, name: str | None) -> EngineConfig:
        """With one form alone; None: with all. Raises RefusedError that names those that there are."""
        forms = tuple(form for form in self.forms if name in (None, form.name))
        if not forms:
            known = ", ".join(form.name for form in self.forms)
            raise RefusedError(f"{self.name} has no form {name!r}: there are {known}")
        return replace(self, forms=forms)


_PYARROW = (
    "pyarrow: credentials of a bucket come from AWS_ACCESS_KEY_ID and its like, or from properties such as s3.access-key-id"
)
_OF_JAVA = "S3FileIO of iceberg-aws-bundle: credentials of a bucket come from AWS_ACCESS_KEY_ID and its like"

_SPARK = """\
spark.jars.packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2
spark.sql.extensions org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
spark.sql.catalog.$name org.apache.iceberg.spark.SparkCatalog
"""
SPARK_REST = (
    _SPARK
    + """\
spark.sql.catalog.$name.type rest
spark.sql.catalog.$name.uri $uri
spark.sql.catalog.$name.warehouse $warehouse
"""
)
SPARK_NESSIE = (
    _SPARK
    + """\
spark.sql.catalog.$name.type nessie
spark.sql.catalog.$name.uri $nessie/api/v2
spark.sql.catalog.$name.ref $reference
spark.sql.catalog.$name.warehouse $location
"""
)
SPARK_FILE = "conf/spark-defaults.conf"
TRINO_REST = """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=$uri
iceberg.rest-catalog.warehouse=$warehouse
iceberg.rest-catalog.nested-namespace-enabled=true
"""
TRINO_FOLDERS = (
    TRINO_REST
    + """\
iceberg.register-table-procedure.enabled=true
fs.hadoop.enabled=true
"""
)
TRINO_S3 = (
    TRINO_REST
    + """\
iceberg.rest-catalog.vended-credentials-enabled=true
fs.native-s3.enabled=true
s3.region=$s3_region$s3_lines
"""
)
TRINO_FILE = "etc/catalog/$name.properties"
FLINK_REST = """\
CREATE CATALOG $name WITH ('type' = 'iceberg', 'catalog-type' = 'rest',
  'uri' = '$uri', 'warehouse' = '$warehouse'$more);
"""
FLINK_VENDED = ",\n  'header.X-Iceberg-Access-Delegation' = 'vended-credentials'"
FLINK_SELECT = "SELECT * FROM $name.sales.orders;\n"
RUST_FILE, GO_FILE = "src/catalog.rs", "catalog.go"
RUST_HEAD = """\
pub async fn open_catalog() -> iceberg::Result<impl iceberg::Catalog> {
    use iceberg::CatalogBuilder;
"""
RUST_PROPERTIES = """\
    let properties = [("uri", "$uri"), ("warehouse", "$warehouse"),
        ("header.X-Iceberg-Access-Delegation", "vended-credentials")$more];
    iceberg_catalog_rest::RestCatalogBuilder::default()
        .with_storage_factory(std::sync::Arc::new(iceberg_storage_opendal::OpenDalResolvingStorageFactory::new()))
        .load("$name", properties.map(|(name, value)| (name.to_string(), value.to_string())).into()).await
}
"""

ENGINE_CONFIGS = (
    EngineConfig(
        "pyiceberg",
        "pyiceberg",
        "pip install 'pyiceberg[pyarrow]'",
        "pyiceberg 0.12",
        _PYARROW,
        (
            ConfigForm(
                "python",
                "python",
                """\
from pyiceberg.catalog import load_catalog
$name = load_catalog("$name", type="rest", uri="$uri", warehouse="$warehouse")
print($name.load_table("sales.orders").scan().to_arrow())
""",
            ),
            ConfigForm(
                "yaml",
                "yaml",
                """\
catalog:
  $name:
    type: rest
    uri: $uri
    warehouse: $warehouse
""",
                "~/.pyiceberg.yaml",
            ),
        ),
    ),
    EngineConfig(
        "spark",
        "Spark",
        "Spark 3.5 and Java; --packages fetches Iceberg's runtime",
        "Spark 3.5.7 with Iceberg 1.10.2",
        "folders as Spark does; of buckets, io-impl=org.apache.iceberg.aws.s3.S3FileIO with iceberg-aws-bundle, which was not tried",
        (
            ConfigForm(
                "shell",
                SHELL,
                """\
spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2 \\
  --conf spark.sql.catalog.$name=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.$name.type=rest \\
  --conf spark.sql.catalog.$name.uri=$uri --conf spark.sql.catalog.$name.warehouse=$warehouse
""",
            ),
            ConfigForm("conf", "ini", SPARK_REST, SPARK_FILE),
        ),
    ),
    EngineConfig(
        "spark-nessie",
        "Spark, by Nessie's API",
        "as spark does, and the catalog's base location, which `headwater catalog show` tells, in place of BASE_LOCATION",
        "Spark 3.5.7 with Iceberg 1.10.2",
        "as spark does; the client writes metadata files, too",
        (
            ConfigForm(
                "shell",
                SHELL,
                """\
spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2 --conf spark.sql.catalog.$name.type=nessie \\
  --conf spark.sql.catalog.$name=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.$name.uri=$nessie/api/v2 \\
  --conf spark.sql.catalog.$name.ref=$reference --conf spark.sql.catalog.$name.warehouse=$location
""",
            ),
            ConfigForm("conf", "ini", SPARK_NESSIE, SPARK_FILE),
        ),
    ),
    EngineConfig(
        "duckdb",
        "DuckDB",
        "DuckDB 1.5",
        "DuckDB 1.5.5",
        "a secret of DuckDB, as the form s3 has it: the server's address of a bucket does not reach DuckDB",
        (
            ConfigForm(
                "sql",
                "sql",
                """\
INSTALL iceberg; LOAD iceberg;
ATTACH '$warehouse' AS $name (TYPE iceberg, ENDPOINT '$uri', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none');
SELECT * FROM $name.sales.orders;
""",
            ),
            ConfigForm(
                "s3",
                "sql",
                """\
INSTALL httpfs; LOAD httpfs; INSTALL iceberg; LOAD iceberg;
CREATE SECRET (TYPE s3, KEY_ID 'your-key-id', SECRET 'your-secret', REGION '$s3_region',
  ENDPOINT '$s3_host', URL_STYLE 'path', USE_SSL $s3_ssl);
ATTACH '$warehouse' AS $name (TYPE iceberg, ENDPOINT '$uri', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none');
SELECT * FROM $name.sales.orders;
""",
            ),
        ),
    ),
    EngineConfig(
        "daft",
        "Daft",
        "pip install daft 'pyiceberg[pyarrow]'",
        "Daft 0.7 with pyiceberg 0.12",
        "Daft's own readers: credentials of a bucket come as pyiceberg's do",
        (
            ConfigForm(
                "python",
                "python",
                """\
import daft; from pyiceberg.catalog import load_catalog
daft.attach_catalog(load_catalog("$name", type="rest", uri="$uri", warehouse="$warehouse"), "$name")
daft.sql("SELECT * FROM $name.sales.orders").show()
""",
            ),
        ),
    ),
    EngineConfig(
        "polars",
        "Polars",
        "pip install polars 'pyiceberg[pyarrow]'",
        "Polars 2.1 with pyiceberg 0.12",
        "Polars' own readers, which storage_options tell what pyiceberg knows; credentials of a bucket come as pyiceberg's do",
        (
            ConfigForm(
                "python",
                "python",
                """\
import polars; from pyiceberg.catalog import load_catalog
orders = load_catalog("$name", type="rest", uri="$uri", warehouse="$warehouse").load_table("sales.orders")
print(polars.scan_iceberg(orders, storage_options={k: v for k, v in orders.io.properties.items() if k[:3] == "s3."}).collect())
""",
            ),
        ),
    ),
    EngineConfig(
        "trino",
        "Trino",
        "Trino 476 or newer; its coordinator and workers have to reach the server",
        "Trino 476",
        "the form folders those that every worker has; the form s3 buckets, by credentials that the server gives clients",
        (
            ConfigForm("folders", "ini", TRINO_FOLDERS, TRINO_FILE),
            ConfigForm("s3", "ini", TRINO_S3, TRINO_FILE),
        ),
    ),
    EngineConfig(
        "flink",
        "Flink",
        "Flink, with iceberg-flink-runtime of its version, hadoop-client-api and hadoop-client-runtime in lib/",
        "Flink 2.1.1 with Iceberg 1.11.0 and Hadoop 3.4.3",
        "folders as Flink does; the form s3 buckets, with iceberg-aws-bundle in lib/, by credentials that the server gives clients",
        (
            ConfigForm("sql", "sql", FLINK_REST.replace("$more", "") + FLINK_SELECT),
            ConfigForm("s3", "sql", FLINK_REST.replace("$more", FLINK_VENDED) + FLINK_SELECT),
        ),
    ),
    EngineConfig(
        "iceberg-rust",
        "Rust",
        "cargo add iceberg iceberg-catalog-rest iceberg-storage-opendal, each of version 0.10",
        "iceberg-rust 0.10.1",
        "OpenDAL: folders, and buckets by credentials that the server gives clients; load a table again after each commit of yours",
        (ConfigForm("rust", "rust", RUST_HEAD + RUST_PROPERTIES.replace("$more", ""), RUST_FILE),),
    ),
    EngineConfig(
        "iceberg-go",
        "Go",
        "go get github.com/apache/iceberg-go@v0.7.0",
        "iceberg-go 0.7.0",
        "folders; buckets with the import of github.com/apache/iceberg-go/io/gocloud, which was not tried",
        (
            ConfigForm(
                "go",
                "go",
                """\
package main

import (
	"context"

	"github.com/apache/iceberg-go/catalog/rest"
)

func openCatalog(ctx context.Context) (*rest.Catalog, error) {
	return rest.NewCatalog(ctx, "$name", "$uri", rest.WithWarehouseLocation("$warehouse"))
}
""",
                GO_FILE,
            ),
        ),
    ),
    EngineConfig(
        "iceberg-js",
        "JavaScript",
        "npm install iceberg-js, on Node.js 22 or newer",
        "iceberg-js 1.0.0",
        "none: iceberg-js keeps namespaces and tables, and reads no rows",
        (
            ConfigForm(
                "javascript",
                "javascript",
                """\
import { IcebergRestCatalog } from 'iceberg-js'
const $name = new IcebergRestCatalog({ baseUrl: '$uri', warehouse: '$warehouse' })
console.log((await $name.listTables({ namespace: ['sales'] })).identifiers)
""",
            ),
        ),
    ),
    EngineConfig(
        "pynessie",
        "pynessie",
        "pip install pynessie 'marshmallow<4'",
        "pynessie 0.67.0",
        "none: pynessie keeps branches, tags and the list of contents, and reads no rows",
        (
            ConfigForm(
                "shell",
                SHELL,
                """\
nessie --endpoint $nessie/api/v1 content list --ref $reference
""",
            ),
            ConfigForm(
                "python",
                "python",
                """\
from pynessie import init
$name = init(config_dict={"endpoint": "$nessie/api/v1"})
print([entry.name.elements for entry in $name.list_keys("$reference").entries])
""",
            ),
            ConfigForm(
                "yaml",
                "yaml",
                """\
endpoint: $nessie/api/v1
default_branch: $reference
""",
                "~/.config/nessie/config.yaml",
            ),
        ),
    ),
    EngineConfig(
        "curl",
        "curl",
        "curl",
        "curl",
        "none",
        (
            ConfigForm(
                "shell",
                SHELL,
                """\
curl -s $config
""",
            ),
        ),
    ),
)
ALIASES = {
    "go": "iceberg-go",
    "javascript": "iceberg-js",
    "js": "iceberg-js",
    "pyspark": "spark",
    "python": "pyiceberg",
    "rust": "iceberg-rust",
}


def parse_engine(text: str) -> EngineConfig:
    """The engine of this name, in any case; raises RefusedError that names those that are known."""
    name = ALIASES.get(text.lower(), text.lower())
    for config in ENGINE_CONFIGS:
        if config.name == name:
            return config
    known = ", ".join(config.name for config in ENGINE_CONFIGS)
    raise RefusedError(f"{text!r} is no engine that is known here: there are {known}; any other needs a client of Iceberg REST")


def warehouse_of(realm: str, catalog: str, ref: str | None = None) -> str:
    """What an engine is told as its warehouse, such as ``acme/lake`` or ``acme/lake@dev``.

    raises        RefusedError for what no realm or catalog can be called
    """
    checked_realm_id(realm)
    checked_catalog_name(catalog)
    return f"{realm}/{catalog}" if ref is None else f"{realm}/{catalog}@{ref}"


def parse_server_url(text: str) -> str:
    """A server's URL, without ``/iceberg`` and the slash at its end; raises RefusedError for another form."""
    if not _URL.fullmatch(text):
        raise RefusedError(f"{text!r} is no URL of a server: write for example http://127.0.0.1:8181")
    return text.rstrip("/").removesuffix(_MOUNT).rstrip("/")


def parse_s3_endpoint(text: str) -> str:
    """The URL of an object store; empty: AWS's own. Raises RefusedError for another form."""
    url = text.rstrip("/")
    if url and (not _URL.fullmatch(url) or urlsplit(url).path):
        raise RefusedError(f"{text!r} is not the URL of an object store: write for example https://s3.example.com")
    return url


def server_url(settings: Settings) -> str:
    """The URL of a server with these settings; raises RefusedError where they leave its port open."""
    listen = settings.server_listen
    if listen.endswith(":0"):
        raise RefusedError(f"HEADWATER_SERVER_LISTEN={listen} takes any free port: name the server's address with --url")
    return f"{'https' if settings.server_certificate else 'http'}://{listen}"
