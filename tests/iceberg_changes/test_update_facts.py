"""What updates say about themselves before they are applied."""

from __future__ import annotations

from typing import Any

from headwater.iceberg.changes import NamedPath, added_files, added_snapshots, claimed_places, moved_refs
from metadata_fixtures import LOCATION, PARTITION_STATISTICS, STATISTICS, snapshot

ODD: list[Any] = [
    None, "add-snapshot", {}, {"action": "add-snapshot"}, {"action": "add-snapshot", "snapshot": 5}, {"action": ["set-location"]},
    {"action": "set-snapshot-ref", "ref-name": 7}, {"action": "set-snapshot-ref", "ref-name": "x", "snapshot-id": "7"},
    {"action": "set-location", "location": 5}, {"action": "set-properties", "updates": []},
    {"action": "set-statistics", "statistics": {"statistics-path": 1}},
]  # fmt: skip
PLACES = ("write.data.path", "write.metadata.path")


def test_added_snapshots_are_found() -> None:
    updates = [
        *ODD,
        {"action": "add-snapshot", "snapshot": snapshot(7, 1)},
        {"action": "add-snapshot", "snapshot": snapshot(8, 2)},
    ]

    assert [entry["snapshot-id"] for entry in added_snapshots(updates)] == [7, 8]


def test_moved_refs_are_where_they_end() -> None:
    refs = moved_refs([
        *ODD, {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 7},
        {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 8}, {"action": "remove-snapshot-ref", "ref-name": "dev"},
    ])  # fmt: skip

    assert refs == {"main": 8, "dev": None}


def test_added_files_are_found_with_their_paths() -> None:
    files = added_files([
        {"action": "add-snapshot", "snapshot": snapshot(7, 1)},
        {"action": "add-snapshot", "snapshot": {"manifests": ["a.avro", 5]}},
        {"action": "set-statistics", "statistics": STATISTICS},
        {"action": "set-partition-statistics", "partition-statistics": PARTITION_STATISTICS},
        *ODD,
    ])  # fmt: skip

    assert files == [
        NamedPath("updates[0].snapshot.manifest-list", f"{LOCATION}/metadata/snap-7.avro"),
        NamedPath("updates[1].snapshot.manifests[0]", "a.avro"),
        NamedPath("updates[2].statistics.statistics-path", STATISTICS["statistics-path"]),
        NamedPath("updates[3].partition-statistics.statistics-path", PARTITION_STATISTICS["statistics-path"]),
    ]


def test_claimed_places_are_found_with_their_paths() -> None:
    places = claimed_places(
        [
            {"action": "set-location", "location": "s3://a/b/"},
            {
                "action": "set-properties",
                "updates": {"write.data.path": "s3://a/data", "write.metadata.path": "", "other": "x"},
            },
            *ODD,
        ],
        PLACES,
        where="table-changes[0].updates",
    )

    assert places == [
        NamedPath("table-changes[0].updates[0].location", "s3://a/b"),
        NamedPath("table-changes[0].updates[1].updates['write.data.path']", "s3://a/data"),
    ]
