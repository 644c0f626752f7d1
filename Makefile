# make reproduce   everything that params.yaml selects, and results/report.html
# make test        the tests that every change must pass: minutes
# make test-all    these and the nightly ones: what a release must pass, on a machine with Slurm
# make test-fast   tests that take less than ten seconds each
# make lint        the linters
# make docs        the documentation as a site, in site/
# make sbom        what is installed, as CycloneDX, in results/sbom.json
# make lock        pin all packages again, with hashes
# make live        look at the running jobs
# make mlflow      look at the results in MLflow
# Each sets up .venv first. Needs: apt-get install -y git make python3-venv
.ONESHELL:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
# Where torch comes from: CPU wheels. `make TORCH_INDEX= ...` takes the CUDA build of PyPI.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PORT ?= 5000
# Tests run in a process for each core, each file in one of them; `make test WORKERS=` has one process
WORKERS ?= --numprocesses logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := true
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup reproduce test test-all test-fast lint types schema docs lock sbom mlflow live unlock

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(VENV)/.ok

# PyTorch's CPU wheels lie on an index of its own and are pinned by version; PyPI's build and everything else by hashes, too.
# What builds packages that have no wheel comes before them, by hash like the rest: pip would fetch its own unpinned.
# The project itself comes last, from this folder.
$(VENV)/.ok: pyproject.toml constraints.txt torch.txt
	hint='Expected Python 3.11 or newer with venv. On Debian: apt-get install -y git make python3-venv'
	command -v $(PYTHON) > /dev/null || { echo "$$hint" >&2; exit 1; }
	$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { echo "$$hint" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	pip="$(VENV)/bin/python -m pip install -q --no-deps"
	if [ -n "$(TORCH_INDEX)" ]; then
		$$pip --retries 1 --timeout 30 --extra-index-url "$(TORCH_INDEX)" "$$(grep -o '^torch==[^ ]*' torch.txt)"
	else
		$$pip --require-hashes -r torch.txt
	fi
	$$pip --require-hashes -r <(awk '/^[a-z]/ { builds = /^(setuptools|wheel)==/ } builds' constraints.txt)
	$$pip --require-hashes --no-build-isolation -r constraints.txt
	$$pip --no-build-isolation -e .
	touch $@

lock: $(VENV)/.ok
	python tools/lock.py

sbom: $(VENV)/.ok
	python tools/sbom.py

reproduce: $(VENV)/.ok
	snakemake
	[ ! -d .git ] || dvc repro --quiet # nothing is left to do: it records what is there in dvc.lock
	snakemake --report results/report.html --report-stylesheet workflow/report/report.css
	echo 'See results/studies and results/report.html'

test: $(VENV)/.ok
	OMP_NUM_THREADS=1 python -m pytest -q $(WORKERS) -m 'not nightly'

test-all: $(VENV)/.ok
	OMP_NUM_THREADS=1 python -m pytest -q $(WORKERS) -m ''

test-fast: $(VENV)/.ok
	OMP_NUM_THREADS=1 python -m pytest -q $(WORKERS) -m 'not slow and not nightly'

lint: $(VENV)/.ok
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow/rules
	lint-imports

types: $(VENV)/.ok
	mypy

schema: $(VENV)/.ok
	python -m confide.config.params --write-schema

docs: $(VENV)/.ok
	mkdocs build --strict --quiet
	echo 'See site/index.html'

mlflow: $(VENV)/.ok
	umask 077
	snakemake track $$([ -f mlflow.db ] || echo --forcerun track)
	view=$$(python -c 'import json; print(json.load(open("results/summary/tracked.json"))["view"])')
	echo "Open http://127.0.0.1:$(PORT)/$$view"
	mlflow server --backend-store-uri sqlite:///mlflow.db --host 127.0.0.1 --port $(PORT) --workers 1

live: $(VENV)/.ok
	confide watch

unlock: $(VENV)/.ok
	snakemake --unlock
