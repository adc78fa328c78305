"""TLS follows its files: whole certificates are taken when they change, and what cannot be used is not."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certificates import served_name, trusting, write_certificate
from headwater.errors import RefusedError
from headwater_server.tls import CertificateFiles


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The files that a server reads; they hold the certificate ``old``."""
    return put(write_certificate(tmp_path, "old"), (tmp_path / "tls.crt", tmp_path / "tls.key"))


def put(files: tuple[Path, Path], into: tuple[Path, Path]) -> tuple[Path, Path]:
    for file, target in zip(files, into, strict=True):
        shutil.copy(file, target.with_suffix(".new"))
        target.with_suffix(".new").rename(target)
    return into


def test_new_certificate_is_served_after_a_reread(files: tuple[Path, Path], tmp_path: Path) -> None:
    tls = CertificateFiles(*files)
    assert served_name(tls.context, trusting(tmp_path / "old.crt")) == "old"

    put(write_certificate(tmp_path, "new"), files)

    assert [tls.reread(), tls.reread()] == [True, False]
    assert served_name(tls.context, trusting(tmp_path / "new.crt")) == "new"
    with pytest.raises(ssl.SSLError):
        served_name(tls.context, trusting(tmp_path / "old.crt"))


@pytest.mark.parametrize(("mode", "count"), [(0o644, 1), (0o440, 0), (0o600, 0)])
def test_key_that_everybody_may_read_is_warned_of(files: tuple[Path, Path], mode: int, count: int) -> None:
    files[1].chmod(mode)
    with capture_logs() as lines:
        CertificateFiles(*files)

    assert [line["file"] for line in lines if line["log_level"] == "warning"] == [str(files[1])] * count


def test_half_a_new_certificate_is_not_served(files: tuple[Path, Path], tmp_path: Path) -> None:
    tls = CertificateFiles(*files)
    certificate, key = write_certificate(tmp_path, "new")

    shutil.copy(certificate, files[0])
    with capture_logs() as lines:
        assert [tls.reread(), tls.reread()] == [False, False]
    assert [line["event"] for line in lines] == ["the certificate was not read again; the old one stays in use"]
    assert served_name(tls.context, trusting(tmp_path / "old.crt")) == "old"

    shutil.copy(key, files[1])
    assert tls.reread()
    assert served_name(tls.context, trusting(certificate)) == "new"


def test_files_that_are_gone_leave_the_old_certificate(files: tuple[Path, Path], tmp_path: Path) -> None:
    tls = CertificateFiles(*files)
    files[1].unlink()

    assert not tls.reread()
    assert served_name(tls.context, trusting(tmp_path / "old.crt")) == "old"


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_server_does_not_start_on_broken_files(files: tuple[Path, Path], content: bytes | None) -> None:
    files[1].unlink() if content is None else files[1].write_bytes(content)

    with pytest.raises(RefusedError, match=r"tls\.key"):
        CertificateFiles(*files)
