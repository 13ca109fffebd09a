# Every target makes its own virtual environment, installs what it needs and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: quickstart test lint format docs clean

quickstart: $(VENV)/.installed
	$(BIN)/echo-hf quickstart

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed
	$(BIN)/python scripts/write_docs.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "echo-hf needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.installed
