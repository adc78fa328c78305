"""ClickHouse in Python, which reads buckets only where the server does not send their address (its issue 93283)."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_tools import MINUTES, run_program, tool_folder

from vending_lake import vending_lake

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * MINUTES)]
_PROGRAM = """\
import sys
from chdb.session import Session
url, credential, storage = sys.argv[1:]
session = Session()
session.query("SET allow_database_iceberg = 1")
session.query(
    f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{url}/iceberg/v1') SETTINGS catalog_type = 'rest', warehouse = 'acme/lake',"
    f" catalog_credential = '{credential}', oauth_server_uri = '{url}/iceberg/v1/oauth/tokens', storage_endpoint = '{storage}',"
    " vended_credentials = true"
)
print(session.query("SELECT id, city FROM lake.`sales.orders` ORDER BY id", "CSV"))
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_bucket_is_read_where_its_address_is_not_sent(tmp_path: Path) -> None:
    python = tool_folder("chdb") / "bin" / "python"
    with vending_lake(tmp_path, session="1h", send_endpoint=False) as lake:
        output = run_program([python, "-c", _PROGRAM, lake.url, lake.root, f"{lake.endpoint}/lake"], tmp_path)

    assert '1,"Bern"' in output and '2,"Graz"' in output
