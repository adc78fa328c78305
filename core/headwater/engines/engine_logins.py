"""How each engine shows credentials: other forms of its configuration, for a server that asks who calls.

The credentials are those of a principal, in a file, or those of a client at an identity provider of one's own. A form names the file
that has the secret, or a variable of the environment where its engine reads no file, so that it can be kept and passed around. The
secret itself stands in it only where somebody asks for that.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from headwater.engines.engine_configs import (
    FLINK_REST,
    FLINK_SELECT,
    FLINK_VENDED,
    GO_FILE,
    RUST_FILE,
    RUST_HEAD,
    RUST_PROPERTIES,
    SHELL,
    SPARK_FILE,
    SPARK_NESSIE,
    SPARK_REST,
    TRINO_FILE,
    TRINO_FOLDERS,
    TRINO_S3,
    ConfigForm,
    EngineAddress,
    EngineConfig,
)
from headwater.errors import RefusedError
from headwater.realms import read_credentials, told_client_id

_VARIABLE = "ICEBERG_CREDENTIAL"
"""No setting of Headwater has such a name."""
CLIENT_SECRET_VARIABLE = "ICEBERG_CLIENT_SECRET"
"""Where forms find the secret of a client at a provider, if they want it without the client's id."""
_SECRET_VARIABLE = "NESSIE_AUTHENTICATION_OAUTH2_CLIENT_SECRET"
"""Where Nessie's client in Java looks for a property that its configuration leaves out."""
_USUAL_SCOPE = "catalog"
_TOKEN_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/%:@-]*)?")
_PLAIN = re.compile(r"""[^'"\\\x00-\x1f\x7f$]+""")
_COMMAND = """python3 -c 'import json, sys; print(sys.argv[1] + ":" + json.load(open(sys.argv[2]))["clientSecret"])' $client_id $file"""
_SECRET_COMMAND = """python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["clientSecret"])' $file"""
_TOKEN_COMMAND = (
    """python3 -c 'import json, sys, urllib.request as web; from urllib.parse import urlencode; uri, client, file = sys.argv[1:];"""
    """ login = {"grant_type": "client_credentials", "client_id": client, "client_secret": json.load(open(file))["clientSecret"]};"""
    """ print(json.load(web.urlopen(uri, urlencode(login).encode()))["access_token"])' $token_uri $client_id $file"""
)
"""Each prints what a variable is set to."""
_ASKED_CREDENTIAL, _ASKED_SECRET = '$client_id:"$$secret"', '"$$secret"'
_ASKED_TOKEN = (
    """"$$(curl -s -K - -d grant_type=client_credentials$scoped $token_uri <<< user=$client_id:"$$secret" |"""
    """ sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')\""""
)
"""What a variable is set to once the user has typed a secret: there is no file that has it."""


@dataclass(frozen=True, slots=True)
class EngineLogin:
    """The credentials of a principal, and the file that they stand in; or a client of an identity provider, whose secret the user has.

    client_id     as engines are told it
    secret        empty: it is not known here
    file          None: no file of Headwater has the secret
    token_url     of the identity provider; empty: the server gives tokens itself
    scope         what is asked for; empty: what the engine asks for by itself
    """

    client_id: str
    secret: str = field(default="", repr=False)
    file: Path | None = None
    token_url: str = ""
    scope: str = ""

    def token_uri(self, address: EngineAddress) -> str:
        """Where tokens are given."""
        return self.token_url or address.token_uri


@dataclass(frozen=True, slots=True)
class LoginForm:
    """A form with ``$login`` where an engine is told its credentials, and ``$scoped`` where a scope goes.

    reference     what stands there to name the place of the secret
    shown         what stands there to show it
    before        what goes before the text to read the secret from its file
    variable      of the environment, which the user has to set first; empty: none
    command       what prints that variable's value: of a shell, with variables for its own words
    asked         the variable's value where no file has the secret, of ``$secret``, which the user has typed
    provided      what stands for the credentials where no file has the secret: it names a variable; empty: as ``reference``
    provided_before   what goes before the text then
    scoped        what asks for a scope
    reading       what stands for ``$reading``, where the text reads a variable
    """

    form: ConfigForm
    reference: str
    shown: str
    before: str = ""
    variable: str = ""
    command: str = _COMMAND
    asked: str = _ASKED_CREDENTIAL
    provided: str = ""
    provided_before: str = ""
    scoped: str = ""
    reading: str = ""

    def filled(self, address: EngineAddress, login: EngineLogin, *, is_shown: bool) -> ConfigForm:
        """Fill in an address and credentials, or where the credentials are found."""
        text = self._text(login, is_shown=is_shown).replace("$scoped", self.scoped if login.scope else "")
        words = {
            "client_id": login.client_id,
            "credential": f"{login.client_id}:{login.secret}",
            "dashed": _dashed(address),
            "scope": login.scope,
            "words": login.scope or _USUAL_SCOPE,
            "secret": login.secret,
            "token_uri": login.token_uri(address),
        }
        if self.form.language == SHELL:
            words = {name: shlex.quote(word) for name, word in words.items()}
        if login.file is not None:
            words["file"] = _quoted_path(login.file, self.form.language)
        words |= address.words(self.form.language)
        return replace(self.form, text=Template(text).substitute(words), file=Template(self.form.file).substitute(words))

    def note(self, address: EngineAddress, login: EngineLogin) -> str | None:
        """What to do before the form is used: set its variable. None: nothing."""
        variable = self.variable or (_provided_variable(self.provided) if login.file is None else "")
        if not variable:
            return None
        told = {"client_id": login.client_id, "file": str(login.file), "token_uri": login.token_uri(address)}
        words = {name: shlex.quote(word) for name, word in told.items()}
        words["scoped"] = f" -d scope={shlex.quote(login.scope)}" if login.scope else ""
        name = variable.replace("$upper", address.name.upper())
        if login.file is None:
            asked = self.asked if self.variable or variable == _VARIABLE else _ASKED_SECRET
            return f"first: read -rsp 'Secret: ' secret; export {name}={Template(asked).substitute(words)}"
        return f'first: export {name}="$({Template(self.command).substitute(words)})"'

    def _text(self, login: EngineLogin, *, is_shown: bool) -> str:
        if is_shown:
            return self.form.text.replace("$login", self.shown).replace("$reading", "")
        text = self.form.text.replace("$reading", self.reading)
        if login.file is None and self.provided:
            return self.provided_before + text.replace("$login", self.provided)
        return self.before + text.replace("$login", self.reference)


def _provided_variable(reference: str) -> str:
    return next((name for name in (_VARIABLE, CLIENT_SECRET_VARIABLE) if name in reference), "")


def read_login(file: Path, warehouse: str | None, scope: str = "") -> EngineLogin:
    """Read a file that ``--credentials`` of another command, or ``headwater up``, wrote.

    raises        RefusedError for any other file, and for credentials of another realm than the warehouse's
    """
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
    wanted = warehouse and warehouse.partition("/")[0]
    if wanted and wanted != realm:
        raise RefusedError(f"{file} has credentials of realm {realm!r}, and {warehouse} is in realm {wanted!r}")
    return EngineLogin(told_client_id(realm, credentials.client_id), credentials.client_secret, file.absolute(), scope=scope)


def provider_login(token_url: str, client_id: str, scope: str = "") -> EngineLogin:
    """The login of a client of an identity provider; raises RefusedError for values that no form can have."""
    if not _TOKEN_URL.fullmatch(token_url):
        raise RefusedError(
            f"{token_url!r} is not the URL of a token endpoint: write for example https://login.example.org/token"
        )
    for name, value in (("client id", client_id), ("scope", scope)):
        if not _PLAIN.fullmatch(value or "-"):
            raise RefusedError(f"{value!r} is not a {name}: quotes, backslashes and control characters are not allowed in it")
    return EngineLogin(client_id, os.environ.get(CLIENT_SECRET_VARIABLE, ""), token_url=token_url, scope=scope)


def engine_login(
    credentials: Path | None, warehouse: str | None, *, token_url: str = "", client_id: str = "", scope: str = ""
) -> EngineLogin | None:
    """The login that a caller names; None where it names none. Raises RefusedError for words that do not go together."""
    if bool(token_url) != bool(client_id):
        raise RefusedError("the URL of a token endpoint goes with a client id, and a client id with that URL")
    if token_url and credentials is not None:
        raise RefusedError("a file with credentials of a principal does not go with the token endpoint of a provider: name one")
    if token_url:
        return provider_login(token_url, client_id, scope)
    if credentials is None:
        if scope:
            raise RefusedError("a scope goes with credentials, or with a token endpoint and a client id")
        return None
    return read_login(credentials, warehouse, scope)


def login_config(config: EngineConfig, address: EngineAddress, login: EngineLogin, *, is_shown: bool) -> EngineConfig:
    """An engine's configuration with an address and credentials filled in; ``is_shown`` puts the secret itself into it."""
    return replace(config, forms=tuple(form.filled(address, login, is_shown=is_shown) for form in _FORMS[config.name]))


def login_notes(config: EngineConfig, address: EngineAddress, login: EngineLogin) -> Mapping[str, str]:
    """What to do before a form is used, by the names of forms: set the variable that it names."""
    notes = {each.form.name: each.note(address, login) for each in _FORMS[config.name]}
    return {name: note for name, note in notes.items() if note is not None}


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
    "provided": f'os.environ["{_VARIABLE}"]',
    "provided_before": "import os\n",
    "scoped": ', "scope": "$scope"',
}
_BY_ENV = {"reference": f"env:{_VARIABLE}", "shown": "$credential", "variable": _VARIABLE}
"""Iceberg's Java library takes a property of this form from the environment."""
_BY_NESSIE_ENV = {"reference": "", "variable": _SECRET_VARIABLE, "command": _SECRET_COMMAND, "asked": _ASKED_SECRET}
_TOKEN = """\
token=$$(curl -s -K - -d grant_type=client_credentials$scoped $token_uri <<< user=$login | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
"""
_BY_VARIABLE = {
    "reference": f'"$${_VARIABLE}"',
    "shown": "$credential",
    "variable": _VARIABLE,
    "scoped": " -d scope=$scope",
}
_PYTHON_LOGIN = 'login = {"credential": $login, "oauth2-server-uri": "$token_uri"$scoped}\n'
_LOAD = 'load_catalog("$name", type="rest", uri="$uri", warehouse="$warehouse", **login)'
_SQL_LOGIN = """\
CREATE SECRET ${name}_login (TYPE iceberg, CLIENT_ID '$client_id', CLIENT_SECRET $login, OAUTH2_SERVER_URI '$token_uri'$scoped);
ATTACH '$warehouse' AS $name (TYPE iceberg, ENDPOINT '$uri', SECRET ${name}_login, ACCESS_DELEGATION_MODE 'none');
SELECT * FROM $name.sales.orders;
"""
_IN_SQL = {
    "reference": "getvariable('login')",
    "shown": "'$secret'",
    "before": "SET VARIABLE login = (SELECT clientSecret FROM read_json($file));\n",
    "provided": f"getenv('{CLIENT_SECRET_VARIABLE}')",
    "scoped": ", OAUTH2_SCOPE '$scope'",
}


def _python(*lines: str, **told: str) -> LoginForm:
    return LoginForm(ConfigForm("python", "python", "".join(lines)), **(_IN_PYTHON | told))


_TRINO_LOGIN = """\
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.server-uri=$token_uri
iceberg.rest-catalog.oauth2.credential=$login
$scoped"""
_FLINK_LOGIN = ",\n  'oauth2-server-uri' = '$token_uri', 'credential' = '$login'$scoped"
_RUST_CREDENTIAL = "    let credential = $login;\n"
_RUST_LOGIN = ',\n        ("credential", credential.as_str()), ("oauth2-server-uri", "$token_uri")$scoped'
_GO_LOGIN = """\
package main

import (
	"context"
	"net/url"
$reading
	"github.com/apache/iceberg-go/catalog/rest"
)

func openCatalog(ctx context.Context) (*rest.Catalog, error) {
	tokens, err := url.Parse("$token_uri")
	if err != nil {
		return nil, err
	}
	return rest.NewCatalog(ctx, "$name", "$uri", rest.WithWarehouseLocation("$warehouse"),
		rest.WithCredential($login), rest.WithAuthURI(tokens)$scoped)
}
"""


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
    $login$scoped
""",
                "~/.pyiceberg.yaml",
            ),
            reference="# credential: taken from the variable that is set first",
            shown="credential: $credential",
            variable="PYICEBERG_CATALOG__$upper__CREDENTIAL",
            scoped="\n    scope: $scope",
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
  --conf spark.sql.catalog.$name.oauth2-server-uri=$token_uri --conf spark.sql.catalog.$name.credential=$login$scoped
""",
            ),
            scoped=" --conf spark.sql.catalog.$name.scope=$scope",
            **_BY_ENV,
        ),
        LoginForm(
            ConfigForm(
                "conf",
                "ini",
                SPARK_REST
                + """\
spark.sql.catalog.$name.oauth2-server-uri $token_uri
spark.sql.catalog.$name.credential $login$scoped
""",
                SPARK_FILE,
            ),
            scoped="\nspark.sql.catalog.$name.scope $scope",
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
  --conf spark.sql.catalog.$name.authentication.oauth2.client-scopes=$words \\
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
spark.sql.catalog.$name.authentication.oauth2.client-scopes $words
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
    "trino": tuple(
        LoginForm(
            ConfigForm(name, "ini", text + _TRINO_LOGIN, TRINO_FILE),
            reference=f"$${{ENV:{_VARIABLE}}}",
            shown="$credential",
            variable=_VARIABLE,
            scoped="iceberg.rest-catalog.oauth2.scope=$scope\n",
        )
        for name, text in (("folders", TRINO_FOLDERS), ("s3", TRINO_S3))
    ),
    "flink": tuple(
        LoginForm(
            ConfigForm(name, "sql", FLINK_REST.replace("$more", more + _FLINK_LOGIN) + FLINK_SELECT),
            scoped=", 'scope' = '$scope'",
            **_BY_ENV,
        )
        for name, more in (("sql", ""), ("s3", FLINK_VENDED))
    ),
    "iceberg-rust": (
        LoginForm(
            ConfigForm("rust", "rust", RUST_HEAD + _RUST_CREDENTIAL + RUST_PROPERTIES.replace("$more", _RUST_LOGIN), RUST_FILE),
            reference=f'std::env::var("{_VARIABLE}").expect("{_VARIABLE} is not set")',
            shown='"$credential".to_string()',
            variable=_VARIABLE,
            scoped=', ("scope", "$scope")',
        ),
    ),
    "iceberg-go": (
        LoginForm(
            ConfigForm("go", "go", _GO_LOGIN, GO_FILE),
            reference=f'os.Getenv("{_VARIABLE}")',
            shown='"$credential"',
            variable=_VARIABLE,
            reading='\t"os"\n',
            scoped=', rest.WithScope("$scope")',
        ),
    ),
    "iceberg-js": (
        LoginForm(
            ConfigForm(
                "javascript",
                "javascript",
                """\
import { IcebergRestCatalog } from 'iceberg-js'
const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: '$client_id', client_secret: $login$scoped })
const { access_token: token } = await (await fetch('$token_uri', { method: 'POST', body })).json()
const $name = new IcebergRestCatalog({ baseUrl: '$uri', warehouse: '$warehouse', auth: { type: 'bearer', token } })
console.log((await $name.listTables({ namespace: ['sales'] })).identifiers)
""",
            ),
            reference="JSON.parse(readFileSync($file)).clientSecret",
            shown="'$secret'",
            before="import { readFileSync } from 'node:fs'\n",
            provided=f"process.env.{CLIENT_SECRET_VARIABLE}",
            scoped=", scope: '$scope'",
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
            'login = {"grant_type": "client_credentials", "client_id": "$client_id", "client_secret": $login$scoped}\n',
            'token = requests.post("$token_uri", data=login).json()["access_token"]\n',
            '$name = init(config_dict={"endpoint": "$nessie/api/v1", "auth.type": "bearer", "auth.token": token})\n',
            'print([entry.name.elements for entry in $name.list_keys("$reference").entries])\n',
            reference='json.load(open($file))["clientSecret"]',
            shown='"$secret"',
            provided=f'os.environ["{CLIENT_SECRET_VARIABLE}"]',
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
            asked=_ASKED_TOKEN,
        ),
    ),
    "curl": (
        LoginForm(
            ConfigForm("shell", SHELL, _TOKEN + 'curl -s -H @- $config <<< "Authorization: Bearer $$token"\n'), **_BY_VARIABLE
        ),
    ),
}
