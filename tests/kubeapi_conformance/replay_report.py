"""``PYTHONPATH=tests python tests/kubeapi_conformance/replay_report.py STORY URL TOKEN``: hold a real API server against the recordings.

It prints what is answered otherwise, and judges nothing: another release has its own words and fields. The server should be empty and
without a controller manager, the token that of a cluster administrator; a story is one of edges, helm, kubectl, operator and many.
"""

from __future__ import annotations

import ssl
import sys
import time
from functools import partial

from comparison import compare
from recorded_stories import STORIES, tell
from replays import Replay

SECONDS_TO_TAKE_EFFECT = 3.0


def main(name: str, url: str, token: str) -> None:
    tls = ssl._create_unverified_context() if url.startswith("https:") else None
    replay = Replay(url, {"Authorization": f"Bearer {token}"}, tls)
    answers = tell(STORIES[name], replay, pause=partial(time.sleep, SECONDS_TO_TAKE_EFFECT))
    for line in STORIES[name].lines():
        for difference in compare(line, answers[line.id]):
            sys.stdout.write(f"{line.id} {line.step[:60]} | {line.request['method']} {line.request['path']} | {difference}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
