# Each target is one line of a real tool; README.md says how to do the same without make.
PYTHON ?= python3
BIN := .venv/bin
# The environment carries a stamp for each set of extras; a changed pyproject.toml makes them again.
TEST_EXTRAS := test,cifar,lite,site
STAMP := .venv/.installed
TEST_STAMP := .venv/.installed-test

.PHONY: course test test-all nbval lint format sync site clean

course: $(STAMP)
	$(BIN)/course run

test: $(TEST_STAMP)
	$(BIN)/python -m pytest -m "not slow"

test-all: $(TEST_STAMP)
	$(BIN)/python -m pytest

nbval: $(TEST_STAMP)
	$(BIN)/python -m pytest --nbval notebooks

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(TEST_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

sync: $(TEST_STAMP)
	$(BIN)/course sync

site: $(TEST_STAMP)
	$(BIN)/python docs/site

clean:
	rm -rf .venv runs

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(TEST_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$(TEST_EXTRAS)]"
	touch $@ $(STAMP)
