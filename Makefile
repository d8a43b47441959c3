# make demo    sets everything up in .venv, runs the service on real documents, exits 0
# make serve   sets everything up and keeps the service running on http://127.0.0.1:8000, data in ./data
# make test    sets everything up and runs lint, types, import order and all tests, and audits what is installed
# make format  rewrites the code in the house's format
# make clean   removes .venv and the tools' caches, never ./data

SHELL := /bin/sh
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# what pip does for what it installs: where bytecode must not be written at run time, every start would compile all of it
COMPILE := $(BIN)/python -m compileall -q app workers core

.PHONY: demo serve test lint types imports audit unit format clean
.DELETE_ON_ERROR:

demo: .venv/run.stamp
	$(BIN)/halfmoon demo

serve: .venv/run.stamp
	exec $(BIN)/halfmoon up --port $(PORT) --data data

# what became known of a dependency is told here and fails nothing: the same commit passes today and tomorrow
test: lint types imports unit
	-@$(BIN)/python -m tests.setup.audit

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

imports: .venv/dev.stamp
	$(BIN)/lint-imports

# fails on known vulnerabilities of what the image installs; without a way to the public database it says so and goes on
audit: .venv/dev.stamp
	$(BIN)/python -m tests.setup.audit

# what compiles kernels shares one cache, and what counts processes is grouped: two processes, a file at a time
unit: .venv/dev.stamp
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Halfmoon needs CPython 3.11 or newer: make PYTHON=python3.12 …' >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/run.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[embedded,demo]'
	$(COMPILE)
	@touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[embedded,demo,dev,bench]'
	$(COMPILE)
	@touch $@ .venv/run.stamp
