"""Random lakes in which something is damaged: every file that was live is still live, or lies where nothing may go."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from walked_lake import ADDED, DELETED, EXISTING, Walked, WalkedLake

from headwater.lake_files.lake_file_values import TablePlace
from headwater.lake_files.path_keys import strict_key
from headwater.lake_files.place_index import EVERYWHERE, PlaceIndex
from headwater.store import Store
from tiers import long_but_for

BUCKETS = ("s3://one/", "s3://two/", "abfss://c@three/")


@dataclass(slots=True)
class RandomLake:
    """Tables that share lists, manifests and folders, on several buckets; ``live`` is known without any walk."""

    lake: WalkedLake
    chance: random.Random
    live: set[str] = field(default_factory=set)
    manifests: dict[str, set[str]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def grow(self) -> None:
        for number in range(self.chance.randint(1, 8)):
            self._manifest(f"t{number % 3}/metadata/m{number}.avro")
        for number in range(self.chance.randint(1, 6)):
            named = self.chance.sample(sorted(self.manifests), self.chance.randint(1, len(self.manifests)))
            self.lake.write_list(f"t{number % 3}/metadata/l{number}.avro", *named)
            self.lists[f"t{number % 3}/metadata/l{number}.avro"] = named
        for number in range(self.chance.randint(1, 7)):
            self._version(number)

    def _manifest(self, name: str) -> None:
        files = [f"{self._folder()}/{self.chance.getrandbits(32):x}" for _ in range(self.chance.randint(1, 5))]
        entries = {file: self.chance.choice((ADDED, EXISTING, DELETED)) for file in files}
        self.lake.write_manifest(name, entries)
        self.manifests[name] = {file for file, status in entries.items() if status != DELETED}

    def _folder(self) -> str:
        return self.chance.choice(("", *BUCKETS)) + f"t{self.chance.randrange(4)}/data"

    def _version(self, number: int) -> None:
        chance, table = self.chance, f"t{self.chance.randrange(4)}"
        lists = chance.sample(sorted(self.lists), chance.randint(0, len(self.lists)))
        inline = chance.sample(sorted(self.manifests), chance.randint(0, min(2, len(self.manifests))))
        statistics = [f"{self._folder()}/{number}.puffin"]
        document = self.lake.document(
            table,
            *lists,
            statistics=[{"statistics-path": self.lake.location(path)} for path in statistics],
            properties={"write.data.path": chance.choice(BUCKETS) + table},
        )
        if inline:
            document["snapshots"].append({"snapshot-id": 99, "manifests": [self.lake.location(path) for path in inline]})
        text = json.dumps(document).encode()
        realm = chance.choice((1, 1, 2))
        if chance.random() < 0.5:
            self.lake.put_text(text, realm=realm)
        else:
            self.lake.put_file(f"{table}/metadata/v{number}.metadata.json", text, realm=realm)
        used = {*inline, *(manifest for path in lists for manifest in self.lists[path])}
        named = {*lists, *used, *statistics, *(path for manifest in used for path in self.manifests[manifest])}
        self.live.update(strict_key(path) or path for path in named)

    def damage(self) -> str:
        """Damage one file that leads to others; returns what was done."""
        metadata = [file for file in sorted(self.lake.folder.rglob("*")) if file.suffix in (".avro", ".json")]
        file = self.chance.choice([file for file in metadata if "_headwater" not in file.as_posix()])
        data = file.read_bytes()
        how = self.chance.choice(("gone", "empty", "cut", "longer", "garbage", "other"))
        others = [other.read_bytes() for other in metadata if other.suffix == file.suffix and other != file]
        replaced = {
            "empty": b"",
            "cut": data[: len(data) * self.chance.randrange(100) // 100],
            "longer": data + b"\0" * self.chance.randint(1, 40),
            "garbage": self.chance.randbytes(200),
            "other": next((other for other in others if len(other) != len(data) and shape(other) != shape(data)), b""),
        }
        file.unlink()
        if how != "gone":
            file.write_bytes(replaced[how])
        return f"{file.name}: {how}"

    def lost(self, walked: Walked) -> set[str]:
        """Live files that the walk neither names nor lets stay."""
        missing = self.live - walked.paths
        places = [TablePlace(location=self.lake.location(path), catalog_id="1") for path in missing]
        blocks = list(walked.walk.blocked)
        assert all(block.location != EVERYWHERE for block in blocks)
        kept = PlaceIndex(places).blocked_by(blocks)
        return {path for path in missing if strict_key(self.lake.location(path)) not in kept}


def shape(data: bytes) -> str:
    """Whether files of their kind are read alike: whole documents of tables are no damage."""
    if b'"manifest_entry"' in data:
        return "manifest"
    return "list" if b'"manifest_file"' in data else "document" if data.startswith(b"{") else "other"


@pytest.mark.parametrize("seed", long_but_for(set(range(6)), range(60)))
def test_live_files_of_a_damaged_lake_stay(store: Store, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lake = RandomLake(WalkedLake(tmp_path / "lake", store), chance)
    lake.grow()
    whole = lake.lake.walk()
    assert lake.live <= whole.paths
    assert whole.walk.blocked == []
    done = [lake.damage() for _ in range(chance.choice((1, 1, 2)))]

    for _ in range(2):  # the second must not have learnt less
        assert lake.lost(lake.lake.walk()) == set(), done
