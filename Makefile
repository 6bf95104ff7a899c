.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install run tasks test test-slow lint format typecheck layers check lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "sandmle needs Python 3.11 or newer; name one with PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python's venv is missing; run: sudo apt install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

install: $(STAMP) ## Make .venv with everything pinned

run: $(STAMP) ## The whole loop, small and offline; ends with a table and an HTML report
	$(BIN)/sandmle quickstart

tasks: $(STAMP) ## One task from each of the 60 seeds, in tasksets/sixty; goes on where it was stopped
	$(BIN)/sandmle generate --seeds all --count 60 --out tasksets/sixty $$(test ! -e tasksets/sixty/run.json || echo --resume)

test: $(STAMP) ## Run the tests
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(STAMP) ## Run the tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: $(STAMP) ## Style and docstrings
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples

format: $(STAMP) ## Rewrite to the project's style
	$(BIN)/ruff check --fix src tests examples
	$(BIN)/ruff format src tests examples

typecheck: $(STAMP) ## mypy, strict on src
	$(BIN)/mypy

layers: $(STAMP) ## Imports go down only
	$(BIN)/lint-imports

check: lint typecheck layers ## All static checks

lock: $(STAMP) ## Write constraints.txt from what is installed
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
