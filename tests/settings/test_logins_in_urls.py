"""What is shown of a URL or a location holds no login."""

from __future__ import annotations

import pytest

from headwater.redaction import without_logins


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("s3://lake/tables", "s3://lake/tables"),
        ("file:///lake", "file:///lake"),
        ("/lake/a@b", "/lake/a@b"),
        ("s3://key@lake/", "s3://***@lake/"),
        ("s3://key:secret@lake/", "s3://***@lake/"),
        ("s3://key:se@cret@lake/", "s3://***@lake/"),
        ("s3://key:se/cret@lake/", "s3://***@lake/"),
        ("s3://key:se?cr#et@lake/", "s3://***@lake/"),
        ("S3A://key:secret@lake/", "S3A://***@lake/"),
        ("redis://:secret@cache:6379/0", "redis://***@cache:6379/0"),
        ("from a://x:1@b to c://y:2@d", "from a://***@b to c://***@d"),
        ("'a://x:1@b', 'c://d'", "'a://***@b', 'c://d'"),
    ],
)
def test_login_in_a_url_is_masked(written: str, shown: str) -> None:
    assert without_logins(written) == shown
