"""Every setting with its default, in one place; read from the environment, and validated all at once.

Settings and arguments obey the same rules for durations, counts and times. NaN compares unequal to itself, so no comparison with it
holds; True is 1 to Python and a mistake to people; a time beyond the year 9999 cannot be shown. All of them are refused at the input.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from headwater.errors import RefusedError

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
GRACE_FLOOR_SECONDS = 5 * MINUTE
_DIGITS = 20
_UNITS = {"ms": 0.001, "s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY}
_PART = re.compile(r"(\d+)(ms|s|m|h|d)")
_DURATION = re.compile(r"(?:\d+(?:ms|s|m|h|d))+")
_SPARK_NAME = re.compile(r"spark\.[^\s=,]+")
_NEXT_SPARK_NAME = re.compile(r",\s*(?=spark\.[^\s=,]+=)")
PREFIX = "HEADWATER_"
_OF_TESTS = re.compile(r"HEADWATER_(BENCH_|DEMO_|SEED$|SOAK$|TEST_|TORTURE_)")
"""Variables that benchmarks, the demo and tests read."""
_OF_THE_OPERATOR = "HEADWATER_OPERATOR_"
_OF_SERVICES = re.compile(r"_SERVICE_(HOST|PORT)(_|$)|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$")
"""Variables that the kubelet sets in every container for each Service of its namespace. Source: Kubernetes documentation, "Services"."""


REQUEST_KINDS = ("add", "split", "assign", "commit", "forget")
"""The requests on file references that a queue takes, as the setting ``files_asynchronous`` names them."""


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``90s``, ``24h``, ``1h30m`` or ``30d``.

    raises        RefusedError when the text is no such duration, or one of more than 36500 days: no time that is told could be so far away
    """
    if not is_duration(text):
        raise RefusedError(f"{text!r} is not a duration: write for example 90s, 15m, 24h or 30d")
    parts = _PART.findall(text)
    if any(len(number) > _DIGITS for number, _ in parts):
        raise RefusedError(f"{text[:40]!r} has too many digits for a duration: the longest is 36500d")
    seconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
    if seconds > LONGEST_SECONDS:
        raise RefusedError(f"{text!r} is too long for a duration: the longest is 36500d")
    return seconds


def is_duration(text: str) -> bool:
    """Whether a text has the form of a duration, however long."""
    return _DURATION.fullmatch(text) is not None


def duration_text(seconds: float) -> str:
    """The shortest exact form that ``parse_duration`` reads back."""
    rest, words = round(seconds * 1000), []
    for unit in ("d", "h", "m", "s", "ms"):
        size = round(_UNITS[unit] * 1000)
        if rest >= size:
            words.append(f"{rest // size}{unit}")
            rest %= size
    return "".join(words) or "0s"


def parse_spark_conf(text: str) -> dict[str, str]:
    """Spark settings by name, from ``spark.name=value,spark.other=value`` (values may hold commas) or from a JSON object.

    raises        RefusedError that names the setting and never shows a value: some are secrets
    """
    text = text.strip()
    pairs = _json_pairs(text) if text.startswith("{") else [_pair(part) for part in _NEXT_SPARK_NAME.split(text) if part]
    if wrong := [name for name, _ in pairs if not _SPARK_NAME.fullmatch(name)]:
        raise RefusedError(f"{wrong[0][:40]!r} is not a name of a Spark setting: they begin with 'spark.'")
    return dict(pairs)


def _pair(part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not equals:
        raise RefusedError("a Spark setting without '=': write spark.name=value,spark.other=value, or a JSON object")
    return name.strip(), value.strip()


def _json_pairs(text: str) -> list[tuple[str, str]]:
    try:
        document = json.loads(text)
    except ValueError as fault:
        raise RefusedError("Spark settings that begin with '{' must be a JSON object") from fault
    pairs = [(name, json.dumps(value) if isinstance(value, bool) else value) for name, value in document.items()]
    if wrong := [name for name, value in pairs if not isinstance(value, str | int | float)]:
        raise RefusedError(f"the Spark setting {wrong[0]!r} must be a text, a number, true or false")
    return [(name, str(value)) for name, value in pairs]


def _seconds(default: float, purpose: str) -> Any:
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": "seconds"})


def _count(default: int, purpose: str, unit: str = "") -> Any:
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": unit})


def _limit(purpose: str, unit: str) -> Any:
    """A field whose value 0 means no limit."""
    return dataclasses.field(default=0, metadata={"purpose": purpose, "unit": unit, "shown": "0 (no limit)"})


def _switch(purpose: str) -> Any:
    return dataclasses.field(default=False, metadata={"purpose": purpose, "unit": ""})


def _share(default: float, purpose: str) -> Any:
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": ""})


def _text(default: str, purpose: str) -> Any:
    return dataclasses.field(default=default, metadata={"purpose": purpose, "unit": "text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings that can be tuned.

    Each field is an environment variable too: ``HEADWATER_`` and the field in capitals, without ``_SECONDS``; durations read as ``15s``.
    """

    store: str = _text("sqlite:///headwater.db", "URL of the store")
    commit_timeout_seconds: float = _seconds(15.0, "how long a commit may try")
    commit_backoff_seconds: float = _seconds(0.005, "first wait after a fault of the database; doubles")
    commit_backoff_limit_seconds: float = _seconds(
        0.250, "longest wait between two attempts of a commit, also after a beaten swap"
    )
    commit_group_members: int = _count(64, "commits of one process to one reference that share a swap, at most")
    commit_group_bytes: int = _count(4 * 1024 * 1024, "what the commits of a group may add, together", "bytes")
    commit_member_seconds: float = _seconds(0.050, "how long a group of commits waits for one member's change")
    copy_batch: int = _count(
        500,
        "contents that a merge, transplant or restoration copies at a time; of more, the copies are written before the commit",
        "contents",
    )
    index_embedded_bytes: int = _count(16 * 1024, "what an index keeps in the commit itself; more is spilled", "bytes")
    index_stripe_bytes: int = _count(16 * 1024, "the size at which a spilled stripe of an index is split", "bytes")
    cache_bytes: int = _count(
        128 * 1024 * 1024, "decoded objects kept in memory, beside an eighth of that for what is derived from them", "bytes"
    )
    reference_ttl_seconds: float = _seconds(15 * MINUTE, "how old a cached reference may be")
    request_lifetime_seconds: float = _seconds(
        30 * MINUTE,
        "how long a request with a key can be repeated without being applied again; at most half the smaller grace",
    )
    realm_handle_ttl_seconds: float = _seconds(60.0, "how old a handle's knowledge of its realm's state may be")
    node_lease_seconds: float = _seconds(10 * MINUTE, "how long a node id is leased")
    node_renew_seconds: float = _seconds(
        5 * MINUTE,
        "how long before its end a lease is renewed; half a lease where only one of the two is set and they do not fit",
    )
    writer_grace_seconds: float = _seconds(3 * HOUR, "no row younger than this is collected")
    reader_grace_seconds: float = _seconds(3 * HOUR, "what was HEAD stays readable this long")
    unsafe_short_graces: bool = _switch("UNSAFE: lets graces and the purge hold go below their floors, for tests and the demo")
    purge_hold_seconds: float = _seconds(24 * HOUR, "wait between INACTIVE and PURGING, where a realm says nothing else")
    catalog_hold_seconds: float = _seconds(24 * HOUR, "how long a deleted catalog can be undeleted; after it, it is purged")
    purged_keys_kept_seconds: float = _seconds(90 * DAY, "how long late rows under a purged key are looked for")
    task_lease_seconds: float = _seconds(60.0, "a task whose token stands still for this long is taken over")
    task_heartbeat_seconds: float = _seconds(15.0, "time between two heartbeats of a running task")
    task_attempts: int = _count(5, "failed or lost attempts until a task is dead-lettered")
    task_backoff_seconds: float = _seconds(10.0, "first wait after a failed attempt; doubles")
    task_backoff_limit_seconds: float = _seconds(10 * MINUTE, "longest wait between two attempts of a task")
    task_history_seconds: float = _seconds(90 * DAY, "how long finished tasks are kept")
    task_time_limit_seconds: float = _seconds(
        6 * HOUR,
        "the longest that one attempt may run; it stops at its next check, is interrupted 30 s later and killed after another minute",
    )
    runs_kept: int = _count(50, "records of maintenance runs")
    content_age_seconds: float = _seconds(30 * DAY, "content history kept, where a realm says nothing else")
    content_commits: int = _count(100, "content history kept, in commits, where a realm says nothing else")
    reference_commits: int = _count(20, "history of other references kept, in commits, where a realm says nothing else")
    mark_exact_bytes: int = _count(64 * 1024 * 1024, "memory for the exact set of marked objects", "bytes")
    filter_fpp: float = _share(1e-5, "false positives, as a share, that the filter beyond that memory is sized for")
    filter_refuse_fpp: float = _share(5e-5, "nothing is deleted when the filter is so full that it has more of them")
    sweep_splits: int = _count(2, "parts of a realm that are swept in parallel", "parts")
    scan_rows_per_second: int = _limit("keys that a collection scans in a second, at most", "rows")
    delete_rows_per_second: int = _limit("rows that a collection or a purge deletes in a second, at most", "rows")
    delete_batch: int = _count(500, "rows deleted per call by the collector and the purge", "rows")
    files_collect_seconds: float = _seconds(15 * MINUTE, "time between two collections of a file table's files")
    files_delete_delay_seconds: float = _seconds(
        3 * HOUR,
        "how long a file of a file table is kept after a collection found it without references; must exceed the longest read of a table,"
        " for a read that takes longer fails",
    )
    files_writer_grace_seconds: float = _seconds(
        24 * HOUR,
        "a file in the folder of a file table that nobody tracks is collected when it is older than this, and no request that comes"
        " later may refer to it; must exceed the longest ingest or compaction with its wait in the queue",
    )
    files_delete_limit: int = _count(750_000, "files that one collection of a file table deletes, at most", "files")
    delete_files_per_second: int = _limit("files that a collection of a file table deletes in a second, at most", "files")
    files_outcomes_kept_seconds: float = _seconds(
        30 * DAY, "how long it is known what became of a request on file references; a repetition after that is a new request"
    )
    files_job_seconds: float = _seconds(
        DAY, "a job that references of a file table were assigned to for longer, and that has no outcome, is reported"
    )
    import_batch: int = _count(500, "tables per commit of an import", "tables")
    expire_batch: int = _count(100, "tables per commit of an expiry of snapshots, at most", "tables")
    expire_tables_per_second: int = _limit("tables that an expiry of snapshots changes in a second, at most", "tables")
    files_store: str = _text(
        "",
        "URL of the PostgreSQL or SQLite database that keeps file references where the store's own database does not: beside MongoDB"
        " and memory",
    )
    files_connections: int = _count(
        8, "connections of one process to the file references on PostgreSQL, at most; idle ones are closed after 30 s"
    )
    files_attempts: int = _count(10, "attempts of a transaction on file references that loses against others")
    broker: str = _text("embedded", "`embedded` (a folder, no server) or the URL of a Redis")
    files_asynchronous: str = _text(
        "auto",
        "which requests on file references go to the queue instead of being applied at once: names among add, split, assign, commit and"
        " forget with commas between them, or `none`; `auto`: commit where the broker is a Redis. Of Headwater's own work, the commits of"
        " compactions on Spark heed it; programs do by `apply_or_send`",
    )
    files_committers: int = _count(4, "committers that apply requests of the queue at the same time, in all workers together")
    files_compaction_batch: int = _count(12, "files that one compaction of a file table merges, at most", "files")
    files_compaction_lease_seconds: float = _seconds(
        HOUR, "after this time, a compaction that was assigned and not committed is executed by whoever compacts next"
    )
    files_leaf_rows: int = _count(50_000_000, "rows from which on a leaf of a file table is split", "rows")
    dispatch_seconds: float = _seconds(1.0, "time between two looks of the dispatcher at the due tasks")
    worker_probes: str = _text(
        "",
        "address and port, as `*:8183`, where a worker or `up` answers `/healthz`, `/readyz` and `/metrics`; empty: none",
    )
    worker_remote_control: bool = _switch(
        "let workers answer Celery's remote control and send its events, so that Flower shows workers and tasks; needs a Redis as broker."
        " Whoever reaches it can stop workers"
    )
    worker_figures_seconds: float = _seconds(15.0, "time between two readings of the store for the metrics of a worker or `up`")
    worker_metrics_realms: int = _count(200, "realms with metrics of their own in a worker; others share `_others_`")
    spark_master: str = _text("local[*]", "Spark master of the pipeline; `off` runs it in process")
    spark_from_tables: int = _count(
        50_000,
        "imports of fewer tables are surveyed in the worker's process even where Spark can run, because that ends before Spark has started;"
        " the worker counts tables for up to 30 seconds, and Spark then lists them anew",
        "tables",
    )
    spark_from_files: int = _count(
        5_000_000,
        "searches for files that nobody refers to are done in the worker's process, even where Spark can run, as long as the last one met"
        " fewer files than this",
        "files",
    )
    spark_conf: str = _text(
        "", "further Spark settings, `spark.name=value,spark.other=value` or a JSON object; they go before the worker's own"
    )
    spark_packages: str = _text("", "Maven packages that Spark loads, `group:name:version`, separated by commas")
    spark_archive: str = _text(
        "", "file or URL of what `headwater spark-archive` wrote, for executors whose Python has no headwater installed"
    )
    storage_file: str = _text(
        "",
        "JSON file, or folder of such files (a mounted Secret), that says by which address and credentials tables' files are reached, by"
        " location, realm and catalog; read again when it changes",
    )
    server_listen: str = _text(
        "127.0.0.1:8181", "address and port that the server listens on, of the loopback interface; port 0 takes a free one"
    )
    server_probes: str = _text(
        "",
        "address and port, as `*:8182`, where the server answers `/healthz`, `/readyz` and `/metrics` and nothing else, also to others;"
        " empty for none",
    )
    server_threads: int = _count(64, "requests that the server works on at the same time, at most")
    server_queue: int = _count(
        512, "requests that wait for a thread of the server, at most; more are answered 429 before any work"
    )
    server_queue_timeout_seconds: float = _seconds(10.0, "how long a request may wait for a thread; then it is answered 429")
    server_connections: int = _count(4096, "connections to the server, at most; requests on more are answered 429")
    server_body_bytes: int = _count(16 * 1024 * 1024, "the largest body of a request, also after it is unpacked", "bytes")
    server_bodies_bytes: int = _count(
        256 * 1024 * 1024,
        "what the bodies that are being received or worked on may take together; more are answered 429",
        "bytes",
    )
    server_answers_bytes: int = _count(
        64 * 1024 * 1024,
        "what the server keeps of its answers to loads of tables, so that it need not make them again",
        "bytes",
    )
    server_head_timeout_seconds: float = _seconds(10.0, "how long the line and the headers of a request may take to arrive")
    server_body_timeout_seconds: float = _seconds(60.0, "how long the body of a request may take to arrive")
    server_request_timeout_seconds: float = _seconds(
        60.0, "how long a request may be worked on: then a read is answered 503, and a change 500, for it may still happen"
    )
    server_idle_timeout_seconds: float = _seconds(75.0, "how long a connection without a request is kept")
    server_drain_timeout_seconds: float = _seconds(20.0, "how long running requests may take to end after SIGTERM")
    server_proxies: str = _text(
        "", "addresses and networks of proxies, with commas between them, whose `X-Forwarded-For` the server believes"
    )
    server_hosts: str = _text(
        "", "names, with commas between them, by which clients call the server beside `localhost` and loopback addresses"
    )
    server_origins: str = _text(
        "", "origins such as `https://console.example.com`, with commas between them, whose pages may call the server (CORS)"
    )
    server_certificate: str = _text(
        "", "file with the server's certificate and its chain, for TLS; read again when it changes. Goes with the private key"
    )
    server_private_key: str = _text("", "file with the private key of the server's certificate")
    server_signing_keys: str = _text(
        "",
        "folder (a mounted Secret) of the keys that sign the server's tokens, a file each: the last by name signs, all verify. With it,"
        " whoever calls the server has to prove who it is; without it, the server listens on loopback alone",
    )
    server_issuers: str = _text(
        "",
        "JSON file that names the OpenID Connect issuers whose tokens the server accepts, by realm; read again when it changes",
    )
    server_token_lifetime_seconds: float = _seconds(HOUR, "how long a token of the server holds")
    server_sign_in_lifetime_seconds: float = _seconds(
        30 * DAY, "for how long after a client has shown its secret its tokens are exchanged for new ones"
    )
    server_access: str = _text("", "name of the plug-in that decides instead of the grants; empty for the grants")
    server_access_file: str = _text("", "file that the plug-in is configured by")
    server_audit_file: str = _text(
        "", "file that the audit log is appended to as JSON lines, `-` for standard output; empty for the server's own log"
    )
    log_format: str = _text("console", "`console` or `json`")

    @property
    def clock_bound_seconds(self) -> float:
        """How far the clocks of two processes may differ: half the smaller grace."""
        return min(self.writer_grace_seconds, self.reader_grace_seconds) / 2

    @property
    def requests_kept_seconds(self) -> float:
        """How long applied requests are kept: the commit that a repeat is answered with must still be readable."""
        return min(self.request_lifetime_seconds, self.clock_bound_seconds)

    @property
    def purge_hold_floor_seconds(self) -> float:
        return self.realm_handle_ttl_seconds + self.commit_timeout_seconds

    @property
    def asynchronous_requests(self) -> tuple[str, ...]:
        """The names in ``files_asynchronous``; none for ``none``."""
        names = tuple(name.strip() for name in self.files_asynchronous.split(",") if name.strip())
        return () if names == ("none",) else names

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Settings from ``HEADWATER_*`` variables; ``overrides`` win.

        raises        RefusedError that names every value that is wrong, not only the first
        """
        values, faults = read_variables(cls, os.environ if environment is None else environment, variable_of)
        values |= {name: value for name, value in overrides.items() if value is not None}
        settings = cls(**_with_fitting_renewal(values))
        faults += settings.faults()
        if faults:
            raise RefusedError("settings: " + "; ".join(faults))
        return settings

    @classmethod
    def variables(cls) -> list[str]:
        """The environment variables of all settings."""
        return [variable_of(field.name) for field in dataclasses.fields(cls)]

    def faults(self) -> list[str]:
        """Everything that is wrong with these settings, each with what would be right."""
        faults = setting_faults(self, variable_of, may_be_zero=_is_limit)
        return [*faults.values(), *without(self, faults)._faults_together()]

    def _faults_together(self) -> list[str]:
        """Faults of combinations of settings, each of which is valid by itself."""
        faults = []
        if not self.unsafe_short_graces:
            for name in ("writer_grace_seconds", "reader_grace_seconds"):
                if getattr(self, name) < GRACE_FLOOR_SECONDS:
                    faults.append(
                        f"{variable_of(name)} must be at least 5m, not {duration_text(getattr(self, name))}"
                        f" ({variable_of('unsafe_short_graces')}=true lowers it, for tests and the demo)"
                    )
            if self.purge_hold_seconds < self.purge_hold_floor_seconds:
                faults.append(
                    f"{variable_of('purge_hold')} must be at least {duration_text(self.purge_hold_floor_seconds)}, "
                    f"not {duration_text(self.purge_hold_seconds)} (handle TTL + commit time-out)"
                )
        if self.task_heartbeat_seconds * 2 > self.task_lease_seconds:
            faults.append(f"{variable_of('task_heartbeat')} must be at most half of {variable_of('task_lease')}")
        if self.node_renew_seconds >= self.node_lease_seconds:
            faults.append(f"{variable_of('node_renew')} must be less than {variable_of('node_lease')}")
        if not self.filter_fpp < self.filter_refuse_fpp < 1:
            faults.append(
                f"{variable_of('filter_fpp')} must be less than {variable_of('filter_refuse_fpp')}, and that less than 1"
            )
        try:
            parse_spark_conf(self.spark_conf)
        except RefusedError as fault:
            faults.append(f"{variable_of('spark_conf')}: {fault}")
        names = set(self.asynchronous_requests)
        is_none = self.files_asynchronous.strip() == "none"
        if names != {"auto"} and not is_none and (not names or names - set(REQUEST_KINDS)):
            faults.append(
                f"{variable_of('files_asynchronous')} must be auto, none, or names among {', '.join(REQUEST_KINDS)},"
                f" not {self.files_asynchronous!r}"
            )
        if self.files_compaction_batch < 2:
            faults.append(f"{variable_of('files_compaction_batch')} must be at least 2, not {self.files_compaction_batch}")
        if self.log_format not in ("console", "json"):
            faults.append(f"{variable_of('log_format')} must be console or json, not {self.log_format!r}")
        return faults


def _with_fitting_renewal(values: dict[str, Any]) -> dict[str, Any]:
    """Renew after half a lease when only one of node_lease and node_renew is set and the two do not fit.

    The one that is set was chosen to fit the other's default at that time, which may have changed since: an hour became ten minutes.
    """
    names = ("node_lease_seconds", "node_renew_seconds")
    lease, renew = (values.get(name, getattr(Settings(), name)) for name in names)
    is_one_set = sum(name in values for name in names) == 1
    if not is_one_set or seconds_fault(lease) or seconds_fault(renew) or not 0 < lease <= renew:
        return values
    return values | {"node_renew_seconds": lease / 2}


def unknown_variables(
    environment: Mapping[str, str], of_the_operator: Collection[str] = (), *, of_the_command_line: Collection[str] = ()
) -> list[str]:
    """A sentence for each ``HEADWATER_`` variable that nothing reads: a mistyped name would leave the default in force, unseen.

    of_the_operator  the variables that the operator reads as well; without them, all that could be the operator's are skipped.
                     Variables of tests, and those that Kubernetes sets for Services, are always skipped
    of_the_command_line  the variables that the command line reads as well
    """
    known = sorted({*Settings.variables(), *of_the_operator, *of_the_command_line})
    strange = [name for name in sorted(environment) if name.startswith(PREFIX) and name not in known]
    if not of_the_operator:
        strange = [name for name in strange if not name.startswith(_OF_THE_OPERATOR)]
    return [_unknown(name, known) for name in strange if not _OF_TESTS.match(name) and not _OF_SERVICES.search(name)]


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], 1, 0.75)
    return f"{name} is set but is not a setting" + (f"; did you mean {PREFIX}{near[0]}?" if near else "")


def variable_of(name: str) -> str:
    """The environment variable of a setting: ``HEADWATER_TASK_LEASE`` of ``task_lease_seconds``."""
    return PREFIX + name.removesuffix("_seconds").upper()


def _is_limit(field: dataclasses.Field[Any]) -> bool:
    return bool(field.metadata.get("shown", "").startswith("0 "))


def read_variables(
    kind: type[Any], environment: Mapping[str, str], variable_of: Callable[[str], str]
) -> tuple[dict[str, Any], list[str]]:
    """Read a class of settings from the environment: values by field, and a sentence for each value that cannot be parsed."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for field in dataclasses.fields(kind):
        name = variable_of(field.name)
        if name in environment:
            try:
                values[field.name] = _parsed(field, environment[name])
            except (ValueError, RefusedError) as fault:
                faults.append(f"{name}={environment[name]!r}: {fault}")
    return values, faults


def _parsed(field: dataclasses.Field[Any], text: str) -> Any:
    if field.type == "bool":
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in words:
            raise ValueError("write true or false")
        return words[text.lower()]
    if field.type == "int":
        return int(text)
    if field.type == "float":
        return parse_duration(text) if field.metadata["unit"] == "seconds" else float(text)
    if field.metadata["unit"] == "names":
        return tuple(name.strip() for name in text.split(",") if name.strip())
    return text


S = TypeVar("S")
LONGEST_SECONDS = 36500 * 86400.0
"""100 years: longer durations would lead beyond any time that can be stored."""
MOST = (1 << 53) - 1
"""The most that a count may be: JSON readers know no larger whole numbers."""
LATEST = 253_402_300_799_999_999
"""The end of the year 9999, in microseconds since 1970."""


def seconds_fault(value: object, *, least: float = 0.0) -> str:
    """The fault of a duration in seconds, to follow its name; an empty text when nothing is wrong."""
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= LONGEST_SECONDS:  # NaN is not
        return ""
    return f"must be a number of seconds from {least:g} to {LONGEST_SECONDS:.0f}, not {_shown(value)}"


def count_fault(value: object, *, least: int = 1) -> str:
    """The fault of a count, to follow its name; an empty text when nothing is wrong."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST:
        return ""
    return f"must be a whole number from {least} to {MOST}, not {_shown(value)}"


def time_fault(value: object) -> str:
    """The fault of a time in microseconds since 1970, to follow its name; an empty text when nothing is wrong."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LATEST:
        return ""
    return f"must be a time from 1970 to 9999, as a whole number of microseconds since 1970, not {_shown(value)}"


def check_seconds(value: object, what: str, *, least: float = 0.0) -> None:
    """raises RefusedError that names ``what`` for a value that is no duration; None is fine"""
    _check(value, what, seconds_fault(value, least=least))


def check_count(value: object, what: str, *, least: int = 1) -> None:
    """raises RefusedError that names ``what`` for a value that is no such number of things; None is fine"""
    _check(value, what, count_fault(value, least=least))


def check_time(value: object, what: str) -> None:
    """raises RefusedError that names ``what`` for a value that is no time; None is fine"""
    _check(value, what, time_fault(value))


def _is_right_type(settings: Any, field: dataclasses.Field[Any]) -> bool:
    """Whether a setting has a value of its field's type; a whole number is a number."""
    value = getattr(settings, field.name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {"bool": isinstance(value, bool), "str": isinstance(value, str), "float": is_number}
    kinds["int"] = is_number and isinstance(value, int)
    kinds["tuple[str, ...]"] = isinstance(value, tuple) and all(isinstance(text, str) for text in value)
    assert str(field.type) in kinds, f"setting {field.name} has the type {field.type}, for which nothing is checked"
    return kinds[str(field.type)]


def sound_seconds(value: float | None, default: float) -> float:
    """A stored duration, limited to the longest; the default where an earlier release accepted NaN or a negative value."""
    if value is None or math.isnan(value) or value < 0:
        return default
    return min(value, LONGEST_SECONDS)


def sound_count(value: int | None, default: int) -> int:
    """A stored count, or the default where an earlier release accepted a count below 1."""
    return default if value is None or value < 1 else value


def setting_faults(settings: Any, variable_of: Callable[[str], str], *, may_be_zero: Callable[[Any], bool]) -> dict[str, str]:
    """Faults of single settings, of type or range, by the name of the field.

    may_be_zero   whether a field may be 0; all others must be above 0
    """
    faults = {}
    for field in dataclasses.fields(settings):
        value, fault = getattr(settings, field.name), ""
        if not _is_right_type(settings, field):
            fault = f"a value of the type {field.type}"
        elif field.type == "int" and count_fault(value, least=int(not may_be_zero(field))):
            fault = f"{'0 or more' if may_be_zero(field) else 'above 0'}, and at most {MOST}"
        elif field.type == "float" and (seconds_fault(value) or not value > 0):
            fault = f"above 0, and at most {LONGEST_SECONDS:.0f}"
        if fault:
            faults[field.name] = f"{variable_of(field.name)} must be {fault}, not {_shown(value)}"
    return faults


def without(settings: S, names: Iterable[str]) -> S:
    """Settings with these fields reset to their defaults: a value that is not a number cannot be compared with others."""
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}  # type: ignore[arg-type]  # a dataclass
    return dataclasses.replace(settings, **{name: defaults[name] for name in names})  # type: ignore[type-var]  # a dataclass


def _check(value: object, what: str, fault: str) -> None:
    if value is not None and fault:
        raise RefusedError(f"{what} {fault}")


def _shown(value: object) -> str:
    """The value as text of at most one line: a number may have thousands of digits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
