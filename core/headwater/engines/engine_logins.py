"""How each engine shows the credentials of a principal: other forms of its configuration, for a server that asks who calls.

A form names the file that has the secret, or a variable of the environment where its engine reads no file, so that it can be kept and
passed around. The secret itself stands in it only where somebody asks for that.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from headwater.engines.engine_configs import (
    SHELL,
    SPARK_FILE,
    SPARK_NESSIE,
    SPARK_REST,
    ConfigForm,
    EngineAddress,
    EngineConfig,
)
from headwater.errors import RefusedError
from headwater.realms import Credentials, read_credentials, told_client_id, told_credential

_VARIABLE = "ICEBERG_CREDENTIAL"
"""No setting of Headwater has such a name."""
_SECRET_VARIABLE = "NESSIE_AUTHENTICATION_OAUTH2_CLIENT_SECRET"
"""Where Nessie's client in Java looks for a property that its configuration leaves out."""
_COMMAND = """python3 -c 'import json, sys; print(sys.argv[1] + ":" + json.load(open(sys.argv[2]))["clientSecret"])' $client_id $file"""
_SECRET_COMMAND = """python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["clientSecret"])' $file"""
_TOKEN_COMMAND = (
    """python3 -c 'import json, sys, urllib.request as web; from urllib.parse import urlencode; uri, client, file = sys.argv[1:];"""
    """ login = {"grant_type": "client_credentials", "client_id": client, "client_secret": json.load(open(file))["clientSecret"]};"""
    """ print(json.load(web.urlopen(uri, urlencode(login).encode()))["access_token"])' $token_uri $client_id $file"""
)
"""Each prints what a variable is set to."""


@dataclass(frozen=True, slots=True)
class EngineLogin:
    """The credentials of a principal, and the file that they stand in."""

    file: Path
    realm: str
    credentials: Credentials = field(repr=False)

    @property
    def client_id(self) -> str:
        """The client's id as engines are told it."""
        return told_client_id(self.realm, self.credentials.client_id)


@dataclass(frozen=True, slots=True)
class LoginForm:
    """A form with ``$login`` where an engine is told its credentials.

    reference     what stands there to name the place of the secret
    shown         what stands there to show it
    before        what goes before the text to read the secret from its file
    variable      of the environment, which the user has to set first; empty: none
    command       what prints that variable's value: of a shell, with variables for its own words
    """

    form: ConfigForm
    reference: str
    shown: str
    before: str = ""
    variable: str = ""
    command: str = _COMMAND

    def filled(self, address: EngineAddress, login: EngineLogin, *, is_shown: bool) -> ConfigForm:
        """Fill in an address and credentials, or where the credentials are found."""
        text = self.form.text.replace("$login", self.shown) if is_shown else self._referring(login)
        words = {
            "client_id": login.client_id,
            "credential": told_credential(login.realm, login.credentials),
            "dashed": _dashed(address),
            "secret": login.credentials.client_secret,
            "token_uri": address.token_uri,
        }
        if self.form.language == SHELL:
            words = {name: shlex.quote(word) for name, word in words.items()}
        words |= {"file": _quoted_path(login.file, self.form.language), **address.words(self.form.language)}
        return replace(self.form, text=Template(text).substitute(words), file=Template(self.form.file).substitute(words))

    def _referring(self, login: EngineLogin) -> str:
        return self.before + self.form.text.replace("$login", self.reference)


def read_login(file: Path) -> EngineLogin:
    """Read a file that ``--credentials`` of another command, or ``headwater up``, wrote; raises RefusedError for any other."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        realm = str(data["realm"])
        credentials = read_credentials(realm, data["clientId"], data["clientSecret"])
    except OSError as fault:
        raise RefusedError(f"credentials file {file}: {fault.strerror or fault}") from fault
    except (ValueError, KeyError, TypeError) as fault:
        raise RefusedError(f"{file} is not a credentials file of Headwater: name another file") from fault
    if credentials is None:
        raise RefusedError(f"{file} has no client id and secret: name another file")
    return EngineLogin(file.absolute(), realm, credentials)


def read_login_of(file: Path, warehouse: str | None) -> EngineLogin:
    """Read the credentials for a warehouse; raises RefusedError where they are of another realm than it."""
    login = read_login(file)
    realm = warehouse and warehouse.partition("/")[0]
    if realm and realm != login.realm:
        raise RefusedError(f"{file} has credentials of realm {login.realm!r}, and {warehouse} is in realm {realm!r}")
    return login


def login_config(config: EngineConfig, address: EngineAddress, login: EngineLogin, *, is_shown: bool) -> EngineConfig:
    """An engine's configuration with an address and credentials filled in; ``is_shown`` puts the secret itself into it."""
    return replace(config, forms=tuple(form.filled(address, login, is_shown=is_shown) for form in _FORMS[config.name]))


def login_notes(config: EngineConfig, address: EngineAddress, login: EngineLogin) -> Mapping[str, str]:
    """What to do before a form is used, by the names of forms: set the variable that it names."""
    told = {"client_id": login.client_id, "file": str(login.file), "token_uri": address.token_uri}
    words = {name: shlex.quote(word) for name, word in told.items()}
    return {
        each.form.name: f'first: export {each.variable.replace("$upper", address.name.upper())}="$({_filled(each.command, words)})"'
        for each in _FORMS[config.name]
        if each.variable
    }


def _filled(command: str, words: Mapping[str, str]) -> str:
    return Template(command).substitute(words)


def _dashed(address: EngineAddress) -> str:
    """What the catalog is called for pyiceberg where its variables name it: they know no capital letters and no underscores."""
    return address.name.lower().replace("_", "-")


def _quoted_path(file: Path, language: str) -> str:
    path = str(file)
    return "'" + path.replace("'", "''") + "'" if language == "sql" else json.dumps(path)


_IN_PYTHON = {
    "reference": '"$client_id:" + json.load(open($file))["clientSecret"]',
    "shown": '"$credential"',
    "before": "import json\n",
}
_BY_ENV = {"reference": f"env:{_VARIABLE}", "shown": "$credential", "variable": _VARIABLE}
"""Iceberg's Java library takes a property of this form from the environment."""
_BY_NESSIE_ENV = {"reference": "", "variable": _SECRET_VARIABLE, "command": _SECRET_COMMAND}
_TOKEN = """\
token=$$(curl -s -K - -d grant_type=client_credentials $token_uri <<< user=$login | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
"""
_BY_VARIABLE = {"reference": f'"$${_VARIABLE}"', "shown": "$credential", "variable": _VARIABLE}
_PYTHON_LOGIN = 'login = {"credential": $login, "oauth2-server-uri": "$token_uri"}\n'
_LOAD = 'load_catalog("$name", type="rest", uri="$uri", warehouse="$warehouse", **login)'
_SQL_LOGIN = """\
CREATE SECRET ${name}_login (TYPE iceberg, CLIENT_ID '$client_id', CLIENT_SECRET $login, OAUTH2_SERVER_URI '$token_uri');
ATTACH '$warehouse' AS $name (TYPE iceberg, ENDPOINT '$uri', SECRET ${name}_login, ACCESS_DELEGATION_MODE 'none');
SELECT * FROM $name.sales.orders;
"""
_IN_SQL = {
    "reference": "getvariable('login')",
    "shown": "'$secret'",
    "before": "SET VARIABLE login = (SELECT clientSecret FROM read_json($file));\n",
}


def _python(*lines: str, **told: str) -> LoginForm:
    return LoginForm(ConfigForm("python", "python", "".join(lines)), **(_IN_PYTHON | told))


_FORMS = {
    "pyiceberg": (
        _python(
            "from pyiceberg.catalog import load_catalog\n",
            _PYTHON_LOGIN,
            f"$name = {_LOAD}\n",
            'print($name.load_table("sales.orders").scan().to_arrow())\n',
        ),
        LoginForm(
            ConfigForm(
                "yaml",
                "yaml",
                """\
catalog:
  $dashed:
    type: rest
    uri: $uri
    warehouse: $warehouse
    oauth2-server-uri: $token_uri
    $login
""",
                "~/.pyiceberg.yaml",
            ),
            reference="# credential: taken from the variable that is set first",
            shown="credential: $credential",
            variable="PYICEBERG_CATALOG__$upper__CREDENTIAL",
        ),
    ),
    "spark": (
        LoginForm(
            ConfigForm(
                "shell",
                SHELL,
                """\
spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2 \\
  --conf spark.sql.catalog.$name=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.$name.type=rest \\
  --conf spark.sql.catalog.$name.uri=$uri --conf spark.sql.catalog.$name.warehouse=$warehouse \\
  --conf spark.sql.catalog.$name.oauth2-server-uri=$token_uri --conf spark.sql.catalog.$name.credential=$login
""",
            ),
            **_BY_ENV,
        ),
        LoginForm(
            ConfigForm(
                "conf",
                "ini",
                SPARK_REST
                + """\
spark.sql.catalog.$name.oauth2-server-uri $token_uri
spark.sql.catalog.$name.credential $login
""",
                SPARK_FILE,
            ),
            **_BY_ENV,
        ),
    ),
    "spark-nessie": (
        LoginForm(
            ConfigForm(
                "shell",
                SHELL,
                """\
spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2 --conf spark.sql.catalog.$name.type=nessie \\
  --conf spark.sql.catalog.$name=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.$name.uri=$nessie/api/v2 \\
  --conf spark.sql.catalog.$name.ref=$reference --conf spark.sql.catalog.$name.warehouse=$location \\
  --conf spark.sql.catalog.$name.authentication.type=OAUTH2 \\
  --conf spark.sql.catalog.$name.authentication.oauth2.token-endpoint=$token_uri \\
  --conf spark.sql.catalog.$name.authentication.oauth2.client-scopes=catalog \\
  --conf spark.sql.catalog.$name.authentication.oauth2.client-id=$client_id$login
""",
            ),
            shown=" --conf spark.sql.catalog.$name.authentication.oauth2.client-secret=$secret",
            **_BY_NESSIE_ENV,
        ),
        LoginForm(
            ConfigForm(
                "conf",
                "ini",
                SPARK_NESSIE
                + """\
spark.sql.catalog.$name.authentication.type OAUTH2
spark.sql.catalog.$name.authentication.oauth2.token-endpoint $token_uri
spark.sql.catalog.$name.authentication.oauth2.client-scopes catalog
spark.sql.catalog.$name.authentication.oauth2.client-id $client_id$login
""",
                SPARK_FILE,
            ),
            shown="\nspark.sql.catalog.$name.authentication.oauth2.client-secret $secret",
            **_BY_NESSIE_ENV,
        ),
    ),
    "duckdb": (
        LoginForm(ConfigForm("sql", "sql", "INSTALL iceberg; LOAD iceberg;\n" + _SQL_LOGIN), **_IN_SQL),
        LoginForm(
            ConfigForm(
                "s3",
                "sql",
                """\
INSTALL httpfs; LOAD httpfs; INSTALL iceberg; LOAD iceberg;
CREATE SECRET (TYPE s3, KEY_ID 'your-key-id', SECRET 'your-secret', REGION 'us-east-1',
  ENDPOINT 's3.us-east-1.amazonaws.com', URL_STYLE 'path', USE_SSL true);
"""
                + _SQL_LOGIN,
            ),
            **_IN_SQL,
        ),
    ),
    "daft": (
        _python(
            "import daft; from pyiceberg.catalog import load_catalog\n",
            _PYTHON_LOGIN,
            f'daft.attach_catalog({_LOAD}, "$name")\n',
            'daft.sql("SELECT * FROM $name.sales.orders").show()\n',
        ),
    ),
    "polars": (
        _python(
            "import polars; from pyiceberg.catalog import load_catalog\n",
            _PYTHON_LOGIN,
            f'orders = {_LOAD}.load_table("sales.orders")\n',
            'options = {k: v for k, v in orders.io.properties.items() if k[:3] == "s3."}\n',
            "print(polars.scan_iceberg(orders, storage_options=options).collect())\n",
        ),
    ),
    "trino": (
        LoginForm(
            ConfigForm(
                "properties",
                "ini",
                """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=$uri
iceberg.rest-catalog.warehouse=$warehouse
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.server-uri=$token_uri
iceberg.rest-catalog.oauth2.credential=$login
""",
                "etc/catalog/$name.properties",
            ),
            reference=f"$${{ENV:{_VARIABLE}}}",
            shown="$credential",
            variable=_VARIABLE,
        ),
    ),
    "flink": (
        LoginForm(
            ConfigForm(
                "sql",
                "sql",
                """\
CREATE CATALOG $name WITH ('type' = 'iceberg', 'catalog-type' = 'rest',
  'uri' = '$uri', 'warehouse' = '$warehouse',
  'oauth2-server-uri' = '$token_uri', 'credential' = '$login');
SELECT * FROM $name.sales.orders;
""",
            ),
            **_BY_ENV,
        ),
    ),
    "iceberg-js": (
        LoginForm(
            ConfigForm(
                "javascript",
                "javascript",
                """\
import { IcebergRestCatalog } from 'iceberg-js'
const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: '$client_id', client_secret: $login })
const { access_token: token } = await (await fetch('$token_uri', { method: 'POST', body })).json()
const $name = new IcebergRestCatalog({ baseUrl: '$uri', warehouse: '$warehouse', auth: { type: 'bearer', token } })
console.log((await $name.listTables({ namespace: ['sales'] })).identifiers)
""",
            ),
            reference="JSON.parse(readFileSync($file)).clientSecret",
            shown="'$secret'",
            before="import { readFileSync } from 'node:fs'\n",
        ),
    ),
    "pynessie": (
        LoginForm(
            ConfigForm(
                "shell",
                SHELL,
                _TOKEN + 'nessie --endpoint $nessie/api/v1 --auth-token "$$token" content list --ref $reference\n',
            ),
            **_BY_VARIABLE,
        ),
        _python(
            "from pynessie import init; import requests\n",
            'login = {"grant_type": "client_credentials", "client_id": "$client_id", "client_secret": $login}\n',
            'token = requests.post("$token_uri", data=login).json()["access_token"]\n',
            '$name = init(config_dict={"endpoint": "$nessie/api/v1", "auth.type": "bearer", "auth.token": token})\n',
            'print([entry.name.elements for entry in $name.list_keys("$reference").entries])\n',
            reference='json.load(open($file))["clientSecret"]',
            shown='"$secret"',
        ),
        LoginForm(
            ConfigForm(
                "yaml",
                "yaml",
                """\
endpoint: $nessie/api/v1
default_branch: $reference
auth:
  type: bearer
  # token: $login
""",
                "~/.config/nessie/config.yaml",
            ),
            reference="taken from the variable that is set first",
            shown="what $token_uri gives for $credential",
            variable="NESSIE_AUTH_TOKEN",
            command=_TOKEN_COMMAND,
        ),
    ),
    "curl": (
        LoginForm(
            ConfigForm("shell", SHELL, _TOKEN + 'curl -s -H @- $config <<< "Authorization: Bearer $$token"\n'), **_BY_VARIABLE
        ),
    ),
}
