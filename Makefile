# make demo    sets up .venv, runs the service on real documents, and exits with 0
# make serve   sets up .venv and runs the service on http://127.0.0.1:8000, its data in ./data
# make test    sets up .venv, runs lint, types, import order and all tests, and audits the dependencies
# make release builds wheels and source distributions into ./dist, with their parts list and provenance
# make format  formats the code
# make clean   removes .venv and the caches of the tools, never ./data

SHELL := /bin/sh
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
# The pip of $(PYTHON) installs into .venv if it can, from 22.3 on: setting up one in .venv takes seconds.
CAN_INSTALL := $(shell $(PYTHON) -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3))' 2>/dev/null && echo yes)
PIP = $(if $(CAN_INSTALL),$(PYTHON) -m pip --python $(BIN)/python,$(BIN)/python -m pip)
# uv takes a third of the time, where it is there; pip has the last word, since uv does not read its configuration.
WITH_UV = uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
WITH_PIP = $(PIP) install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# What kernels are compiled with is installed first, so that those of most jobs are compiled while the rest is fetched; a
# service compiles the others while it runs. Hardly anything that the compiler leaves is garbage: looking for it would take
# a twelfth of the time. The shell keeps Ctrl-C from what runs in the background, so it is ended by hand.
KERNELS = numba pydantic scipy threadpoolctl
warm = $(BIN)/python -c 'import gc; gc.disable(); from core.warm_up import FIRST; from workers.worker.warm_up import warm_up; warm_up($(1))'
RUN = --editable '.[embedded,demo,encoder]' --editable ./client
DEV = --editable '.[embedded,demo,encoders,dev,bench]' --editable ./client
install = $(if $(shell command -v uv),$(WITH_UV) $(1) || )$(WITH_PIP) $(1)
# Python writes the bytecode of what is imported, which is less than all that is installed, even where the environment forbids it:
# otherwise every start would compile it again.
export PYTHONDONTWRITEBYTECODE :=

.NOTPARALLEL:
.PHONY: demo serve test lint types types-mac imports audit unit release format clean
.DELETE_ON_ERROR:

demo: .venv/run.stamp
	$(BIN)/halfmoon demo

serve: .venv/run.stamp
	exec $(BIN)/halfmoon up --port $(PORT) --data data

# a vulnerability that becomes known is reported here and fails nothing: the same commit passes today and tomorrow
test: lint types imports unit
	-@$(BIN)/python -m tests.setup.audit

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/python client/generate.py
	$(BIN)/mypy --num-workers 2

# the types of the product on a Mac, where it cannot be tried here
types-mac: .venv/dev.stamp
	$(BIN)/mypy --platform darwin app workers storage core client/src

imports: .venv/dev.stamp
	$(BIN)/lint-imports

# fails on known vulnerabilities of what the image installs; passes with a message when the public database cannot be reached
audit: .venv/dev.stamp
	$(BIN)/python -m tests.setup.audit

# twice as many processes as two cores, since half of the time in which services are tested is waiting; a file at a time:
# tests that count processes stay together
unit: .venv/dev.stamp .venv/kernels.stamp
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile

release: .venv/dev.stamp
	$(BIN)/python deploy/release.py dist

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Halfmoon needs CPython 3.11 or newer: make PYTHON=python3.12 …' >&2; exit 1; }
	$(PYTHON) -m venv $(if $(CAN_INSTALL),--without-pip) .venv

.venv/run.stamp: pyproject.toml client/pyproject.toml constraints.txt | .venv/bin/python
	$(call install,$(KERNELS))
	$(call warm,FIRST) & trap "kill $$!" INT; $(call install,$(RUN)); installed=$$?; wait $$! && exit $$installed
	@touch $@

.venv/dev.stamp: pyproject.toml client/pyproject.toml constraints.txt | .venv/bin/python
	$(call install,$(DEV))
	@touch $@ .venv/run.stamp

# all kernels that training runs, compiled into Numba's cache beside their modules: no test waits for the compiler
.venv/kernels.stamp: .venv/run.stamp $(shell find core -name '*.py')
	$(call warm)
	@touch $@
