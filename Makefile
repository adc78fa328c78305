# One word per chore; `make` alone lists them. PYTHON=/path/to/python chooses the interpreter that .venv is made with.

SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin

export PYSPARK_PYTHON := $(CURDIR)/$(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup test demo docs format clean

help: ## list these words
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv with everything in it; safe to repeat, quick when nothing changed
	@scripts/setup.sh java redis

test: setup ## check style, types and layers, and run every test
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/pytest

demo: ## set up, then run Headwater's main job on embedded parts; ends by itself
	@scripts/setup.sh java
	$(RUN)/python examples/demo.py

docs: setup ## write docs/cli.md and docs/settings.md anew from the code
	$(RUN)/python docs/generate.py

format: setup ## let ruff format the code and mend what it can
	$(RUN)/ruff format
	$(RUN)/ruff check --fix

clean: ## remove .venv and everything that tools and the demo left
	rm -rf $(VENV) .demo .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist spark-warehouse metastore_db derby.log
	find core workers tests examples docs -name __pycache__ -type d -prune -exec rm -rf {} +
