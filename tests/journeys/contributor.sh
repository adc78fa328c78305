# The first ten minutes of a contributor: a clone, what there is, where to change what, and one test.
# The environment of this checkout stands in for `make setup`, which takes a minute.
git clone --quiet "$CHECKOUT" headwater
cd headwater
ln -s "$CHECKOUT/.venv" .venv

# The words of the project, and where to change what.
make
grep -n "^#" CONTRIBUTING.md

# A setting is a field with a default and a sentence; the page of settings is written from it.
grep -n "commit_timeout_seconds" core/headwater/settings.py
.venv/bin/python docs/generate.py
git diff --exit-code --stat docs

# The tests of one folder, and the style.
.venv/bin/python -m pytest -q tests/index -k "stripe"
.venv/bin/ruff check core/headwater/api
.venv/bin/ruff format --check core/headwater/api
