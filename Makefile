# The commands of this project. Each does its own set-up: nothing but Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup demo test test-all lint format bench recompile clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## create .venv and install everything from constraints.txt

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup ## solve the hardest published Sudokus, and one made on the spot
	$(BIN)/samm demo

test: setup ## the tests (a few minutes on two cores)
	$(BIN)/python -m pytest -n auto -m "not slow" tests

test-all: setup ## the tests and the long ones: 10,000 malformed inputs, every row of the data
	$(BIN)/python -m pytest -n auto tests

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## speed of the data engine and of the refilled batch, on this machine
	$(BIN)/python benchmarks/sudoku_engine.py
	$(BIN)/python benchmarks/batches.py
	$(BIN)/python benchmarks/refill.py sudoku-6x6

recompile: ## forget compiled code, after a change in the compiled modules
	find src -name "*.nb[ci]" -delete

clean: ## remove .venv and caches
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
