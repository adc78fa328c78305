# The first ten minutes of a contributor: a clone, what there is, one test, and what the house asks for.
# The environment of this checkout stands in for `make setup`, which takes a minute.
git clone --quiet "$CHECKOUT" headwater
cd headwater
ln -s "$CHECKOUT/.venv" .venv

# The words of the project, and how to begin.
make
cat CONTRIBUTING.md | head -40

# One test, the style, the types of one file.
.venv/bin/python -m pytest -q -p no:cacheprovider tests/realms/test_realm_registry.py 2>/dev/null || .venv/bin/python -m pytest -q tests/index -k stripe
.venv/bin/ruff check core/headwater/api
.venv/bin/ruff format --check core/headwater/api
