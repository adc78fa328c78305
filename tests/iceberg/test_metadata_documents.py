from __future__ import annotations

import gzip

import pytest

from headwater.iceberg import QuarantineCode
from headwater.iceberg import metadata_json as documents
from headwater.iceberg.metadata_json import decode_metadata
from headwater.iceberg.survey_outcomes import RejectedTable


def code_of(data: bytes) -> QuarantineCode:
    with pytest.raises(RejectedTable) as unfit:
        decode_metadata(data, path="s3://lake/t/metadata/v1.metadata.json")
    assert "v1.metadata.json" in str(unfit.value)
    return unfit.value.code


def test_gzip_may_have_several_members() -> None:
    assert decode_metadata(gzip.compress(b'{"a"') + gzip.compress(b": 1}"), path="v1.metadata.json") == {"a": 1}


def test_gzip_is_told_by_the_content() -> None:
    assert decode_metadata(gzip.compress(b'{"a": 1}'), path="v1.metadata.json") == {"a": 1}
    assert decode_metadata(b'{"a": 1}', path="v1.gz.metadata.json") == {"a": 1}


def test_byte_order_mark_does_no_harm() -> None:
    assert decode_metadata(b'\xef\xbb\xbf{"a": 1}', path="v1.metadata.json") == {"a": 1}


def test_document_may_be_nested_two_hundred_times() -> None:
    assert decode_metadata(b'{"a":' + b"[" * 199 + b"]" * 199 + b"}", path="v1.metadata.json")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", QuarantineCode.CORRUPT),
        (b'{"a": [1, 2', QuarantineCode.CORRUPT),
        (b"[1, 2]", QuarantineCode.CORRUPT),
        (b'{"a": "\xff"}', QuarantineCode.CORRUPT),
        (b"[" * 100_000, QuarantineCode.CORRUPT),
        (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", QuarantineCode.CORRUPT),
        (gzip.compress(b'{"a": 1}', mtime=0)[:-9], QuarantineCode.CORRUPT),
        (b"\x1f\x8b but no gzip", QuarantineCode.CORRUPT),
        (b"\x28\xb5\x2f\xfd zstd", QuarantineCode.UNKNOWN_CODEC),
        (b"BZh91 bzip2", QuarantineCode.UNKNOWN_CODEC),
    ],
)
def test_broken_file_has_its_reason(data: bytes, code: QuarantineCode) -> None:
    assert code_of(data) is code


def test_small_file_that_unpacks_to_a_huge_one_stays_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 1000)

    assert code_of(gzip.compress(b" " * 100_000)) is QuarantineCode.TOO_LARGE


def test_gzip_of_very_many_members_is_not_followed() -> None:
    assert code_of(gzip.compress(b"", mtime=0) * 10_001) is QuarantineCode.CORRUPT


def test_gzip_members_as_many_as_other_tools_make_are_read() -> None:
    packed = b"".join(gzip.compress(part, mtime=0) for part in (b'{"a": [', *[b"1," * 3000] * 2000, b"1]}"))

    assert len(decode_metadata(packed, path="v1.metadata.json")["a"]) == 6_000_001
