# One word per chore; `make` alone lists them. PYTHON=/path/to/python chooses the interpreter that .venv is made with.

SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin
KUBE_TESTS := $(addprefix tests/,kubeapi_conformance crds operator kube_stories plugin chart)
CHECK_TESTS := $(addprefix tests/,test_tiers.py house index iceberg manifests settings)

# JVMs of Spark read their classes from an archive, once one is there
SPARK_OPTIONS := SPARK_SUBMIT_OPTS="$$(cat .tools/spark-classes/options 2>/dev/null)"
RUN_TESTS := $(SPARK_OPTIONS) $(RUN)/python scripts/run_tests.py

export PYSPARK_PYTHON := $(CURDIR)/$(VENV)/bin/python
# Tests start hundreds of processes: where images of containers turn bytecode off, each would compile all of Headwater, and pytest every test anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup style quick-tests check test test-long test-engines test-kube report demo demo-kube bench docs format clean

help: ## list these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv with everything in it; safe to repeat, quick when nothing changed
	@scripts/setup.sh java redis postgresql kubectl

style: setup
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports

check: style ## check style, types and layers, and run the tests of what is pure, in a minute
	$(RUN_TESTS) -m 'not long' $(CHECK_TESTS)

quick-tests: setup
	@$(RUN_TESTS) -m 'not long'

test: setup ## check style, types and layers, and run the quick tests
	@$(MAKE) --no-print-directory --jobs=2 style quick-tests

test-long: setup ## run the tests marked long: real processes, Spark, engines, servers, all cases of each test
	@scripts/setup.sh engines & engines=$$!; scripts/setup.sh iceberg_engine nginx shells browser spark_classes && wait $$engines
	@$(RUN_TESTS) --processes 5 -m long

test-engines: setup ## run the tests of Trino, Flink, Keycloak, chDB, iceberg-rust and iceberg-go, which are downloaded and built first
	@scripts/setup.sh java trino flink keycloak chdb iceberg_rust iceberg_go
	$(RUN)/pytest -m long tests/foreign_engines

test-kube: setup ## run the tests of Kubernetes alone; KUBEBUILDER_ASSETS=folder runs them on a real API server
	HEADWATER_KUBEAPI_CONFORMANCE=1 $(RUN_TESTS) $(KUBE_TESTS)
	$(RUN)/python tests/kubeapi_conformance/emulator_digest.py --write

report: setup ## compare figures of the codebase with those of BASE=commit, HEAD without it; JOURNEYS=1 counts files opened, too
	@$(RUN)/python tests/house/rulers.py $(BASE) $(if $(JOURNEYS),--journeys)

demo: ## set up, then run Headwater's main job on embedded parts; ends by itself
	@scripts/setup.sh java duckdb
	$(SPARK_OPTIONS) $(RUN)/python examples/demo.py

demo-kube: ## run the examples on the cluster of your kubeconfig; CONFIRM_CONTEXT=name says that you mean it
	@scripts/setup.sh kubectl
	CONFIRM_CONTEXT='$(CONFIRM_CONTEXT)' $(RUN)/python examples/demo_kube.py $(if $(LOCAL),--local) $(if $(APPLY),--apply) $(if $(VALUES),--values '$(VALUES)')

bench: setup ## measure, on this machine: SUITE=name for one suite, QUICK=1 for a small run that shows that it works
	@scripts/setup.sh contenders
	$(RUN)/python -m benchmarks.run $(SUITE) $(if $(QUICK),--quick)

docs: setup ## write the generated pages and tables of docs/ anew from the code
	$(RUN)/python docs/generate.py
	$(RUN)/python charts/generate.py
	$(RUN)/python deploy/generate.py
	$(RUN)/python -m benchmarks.pages

format: setup ## let ruff format the code and mend what it can
	$(RUN)/ruff format
	$(RUN)/ruff check --fix

clean: ## remove .venv and everything that tools and the demo left
	rm -rf $(VENV) .tools .demo .cache site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist spark-warehouse metastore_db derby.log
	find core operator server workers tests examples docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
