from __future__ import annotations

import pytest

from headwater.iceberg.layout import MetadataName, NameScheme, parse_metadata_name

UUID = "12345678-03fe-4693-9a96-a0705ddf69c1"


@pytest.mark.parametrize(
    ("name", "scheme", "number"),
    [
        (f"00003-{UUID}.metadata.json", NameScheme.METASTORE, 3),
        (f"00003-{UUID}.gz.metadata.json", NameScheme.METASTORE, 3),
        (f"00003-{UUID}.metadata.json.gz", NameScheme.METASTORE, 3),
        (f"123456-{UUID}.metadata.json", NameScheme.METASTORE, 123456),
        ("v7.metadata.json", NameScheme.HADOOP, 7),
        ("v7.gz.metadata.json", NameScheme.HADOOP, 7),
        ("v7.metadata.json.gz", NameScheme.HADOOP, 7),
        ("v7.zstd.metadata.json", NameScheme.HADOOP, 7),
        ("v1749025517.metadata.json", NameScheme.HADOOP, 1749025517),
        ("v3.1.metadata.json", NameScheme.UNNUMBERED, -1),
        ("vfinal.metadata.json", NameScheme.UNNUMBERED, -1),
        (f"{UUID}.metadata.json", NameScheme.UNNUMBERED, -1),
    ],
)
def test_each_naming_scheme_gives_its_number(name: str, scheme: NameScheme, number: int) -> None:
    parsed = parse_metadata_name(name)

    assert parsed is not None
    assert (parsed.scheme, parsed.number) == (scheme, number)


@pytest.mark.parametrize(
    "name",
    [
        ".v3.metadata.json.crc",
        "v3.metadata.json.crc",
        ".hidden.metadata.json",
        "_temporary.metadata.json",
        "v3.metadata.json.tmp",
        "v3.metadata.json~",
        "v3.metadata.json.bak",
        "snap-12-1-abc.avro",
        "version-hint.text",
        ".metadata.json",
    ],
)
def test_other_files_are_no_metadata(name: str) -> None:
    assert parse_metadata_name(name) is None


def test_stem_has_neither_codec_nor_suffix() -> None:
    assert parse_metadata_name("v7.gz.metadata.json") == MetadataName("v7", NameScheme.HADOOP, 7)
