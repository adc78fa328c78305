"""What a Catalog declares of policies: ``spec.policies``, in the words of ``headwater.policies``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.policies import (
    MOST_RULES,
    MOST_TO_KEEP,
    FileMode,
    FileRule,
    MetadataFileRule,
    PolicyKind,
    SnapshotRule,
    StoredPolicy,
    check_policy,
)
from headwater.reconcile.yaml_values import YamlValue


def read_policies(value: YamlValue) -> tuple[StoredPolicy, ...]:
    """The policies that are declared, each checked."""
    fields = value.block("snapshots", "metadataFiles", "fileCollection")
    return tuple(_policies(fields))


def _policies(fields: Mapping[str, YamlValue]) -> Iterator[StoredPolicy]:
    rules, of_log, files = fields["snapshots"], fields["metadataFiles"], fields["fileCollection"]
    if rules.node is not None:
        before = len(rules.source.faults)
        items = rules.items(least=1)
        if len(items) > MOST_RULES:
            items[MOST_RULES].fault(f"there may be {MOST_RULES} rules, not {len(items)}")
        snapshots = tuple(map(_snapshot_rule, items))
        yield _checked(rules, before, StoredPolicy(kind=PolicyKind.SNAPSHOTS, catalog_id="", snapshots=snapshots))
    if of_log.node is not None:
        before = len(of_log.source.faults)
        inner = of_log.block("keep", "maxAge")
        rule = MetadataFileRule(keep=_count(inner["keep"]), max_age_seconds=inner["maxAge"].duration())
        yield _checked(of_log, before, StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="", metadata_files=rule))
    if files.node is not None:
        before = len(files.source.faults)
        yield _checked(files, before, StoredPolicy(kind=PolicyKind.FILE_COLLECTION, catalog_id="", files=_file_rule(files)))


def _snapshot_rule(value: YamlValue) -> SnapshotRule:
    fields = value.block("branches", "maxAge", "minToKeep", "maxRefAge")
    return SnapshotRule(
        branches="*" if fields["branches"].node is None else fields["branches"].text(),
        max_age_seconds=fields["maxAge"].duration(),
        min_to_keep=_count(fields["minToKeep"]),
        max_ref_age_seconds=fields["maxRefAge"].duration(),
    )


def _file_rule(value: YamlValue) -> FileRule:
    fields = value.block("grace", "delay", "hold", "mode")
    mode: FileMode = fields["mode"].choice("off", "report")
    return FileRule(
        grace_seconds=fields["grace"].duration(),
        delay_seconds=fields["delay"].duration(),
        hold_seconds=fields["hold"].duration(),
        mode=None if fields["mode"].node is None else mode,
    )


def _count(value: YamlValue) -> int | None:
    return value.whole(least=1, most=MOST_TO_KEEP)


def _checked(value: YamlValue, before: int, policy: StoredPolicy) -> StoredPolicy:
    """The policy; what it cannot say is a fault, unless some of it could not be read at all."""
    if len(value.source.faults) == before:
        value.apply_check(check_policy, policy)
    return policy
