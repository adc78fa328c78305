"""The recordings as stories: lines that build on each other, and what was done between them without being recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from known_differences import LEFT_OUT
from replays import Answer, Replay, headers_of

from kubetest.recordings import Line, read_lines

__all__ = ["STORIES", "Story", "tell"]

GROUP = "/apis/headwater.dev/v1alpha1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/"
SLOW = ("customresourcedefinitions", "validatingadmissionpolicies", "validatingadmissionpolicybindings")
"""A real server goes on for a while as if what was written of these were not there."""
PERSON = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "person"}
Act = Callable[[Replay], None]


@dataclass(frozen=True)
class Story:
    """``between`` is what was done before the line of a number."""

    files: tuple[str, ...]
    numbers: range = range(1, 10_000)
    between: dict[int, tuple[Act, ...]] = field(default_factory=dict)

    def lines(self) -> list[Line]:
        """Those that are sent, in the order in which they were recorded."""
        found = [line for file in self.files for line in read_lines(file)]
        kept = [line for line in found if line.number in self.numbers and line.id not in LEFT_OUT]
        return sorted(kept, key=lambda line: line.number)


def tell(story: Story, replay: Replay, *, pause: Callable[[], object] = lambda: None) -> dict[str, Answer]:
    """What the server of the replay answers, by line. ``pause`` waits until definitions and policies have taken effect."""
    found = {}
    for line in story.lines():
        for act in story.between.get(line.number, ()):
            act(replay)
            pause()
        found[line.id] = replay.play(line)
        if line.resource in SLOW and line.request["method"] in ("POST", "PATCH"):
            pause()
    return found | replay.end()


def make_namespaces(*names: str) -> Act:
    def make(replay: Replay) -> None:
        for name in names:
            _make(replay, "/api/v1/namespaces?fieldManager=kubectl-create", {"metadata": {"name": name}})

    return make


def make_realms(namespace: str, *names: str) -> Act:
    def make(replay: Replay) -> None:
        for name in names:
            realm = {"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": {"name": name}, "spec": {}}
            _make(replay, f"{GROUP}/namespaces/{namespace}/realms", realm)

    return make


def install(replay: Replay) -> None:
    """The resource definitions and the policy of the day of the recordings, as kubectl applied them then."""
    for line in read_lines("kubectl-resources"):
        if line.step == "setup" and line.resource_path.startswith((CRDS, POLICIES)) and line.request["method"] != "GET":
            made, _ = replay.send(line.request["method"], line.request["path"], line.body, headers_of(line))
            assert made.status == 201, made.body


def make_edges(replay: Replay) -> None:
    """What the edges had left in the cluster when its story went on."""
    for line in read_lines("edges"):
        if line.resource == "realms" and line.response["status"] == 201:
            replay.play(line)


def free_catalogs(replay: Replay) -> None:
    """Take off the finalizers by which the deletions of two catalogs wait for a controller that is not there."""
    for name in ("lake", "scratch"):
        patch = {"metadata": {"finalizers": None}}
        headers = {"Content-Type": "application/merge-patch+json"}
        freed, _ = replay.send("PATCH", f"{GROUP}/namespaces/lakes/catalogs/{name}", patch, headers)
        assert freed.status == 200, freed.body


def _make(replay: Replay, path: str, body: object) -> None:
    made, _ = replay.send("POST", path, body, PERSON)
    assert made.status == 201, made.body


MANY = (make_namespaces("many"), make_realms("many", *(f"realm-{number:03}" for number in range(505))))
HOMES = make_namespaces("headwater", "lakes", "lakes-two", "sealed", "gold")
STORIES = {
    "edges": Story(("edges",), between={277: (install,)}),
    "helm": Story(("helm",)),
    "kubectl": Story(("kubectl-resources",), between={264: (free_catalogs,), 346: MANY}),
    "operator": Story(("operator", "plugin"), range(1, 2023), {1: (HOMES,), 31: (install,)}),
    "many": Story(
        ("operator", "plugin"),
        range(2023, 10_000),
        {2355: (HOMES, install, make_edges, *MANY)},
    ),
}
