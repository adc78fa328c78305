from __future__ import annotations

import subprocess
import sys


def test_an_executor_on_its_way_to_the_pipeline_loads_no_broker() -> None:
    code = "import sys, headwater_workers.pipeline.surveys; print(sorted({'celery', 'kombu', 'pyspark', 'click'} & sys.modules.keys()))"

    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"
