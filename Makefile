# `make run` plays the main example, and `make test` runs the tests: both need only python3 and make. `make test-all` runs
# the slow tests and the comparisons with other libraries, too. `make docs` builds the documentation.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-all docs

run: $(VENV)/.installed-run
	$(BIN)/python examples/digits.py

test: $(VENV)/.installed-test
	@echo 'The tests take about ten minutes on two cores. Slow ones and comparisons are left out: make test-all.'
	$(BIN)/pytest -n auto

test-all: $(VENV)/.installed-test-all
	@echo 'The slow tests and the comparisons take much longer than the others: make test runs those alone.'
	$(BIN)/pytest -n auto -m '' retrograd tests tests/oracles

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -b html -W --keep-going -n -q docs build/site
	@echo 'The pages are in build/site; begin with build/site/index.html.'

$(VENV)/.installed-run: EXTRAS := scipy,examples
$(VENV)/.installed-docs: EXTRAS := docs
$(VENV)/.installed-test: EXTRAS := test,dev,scipy,viz,examples

$(VENV)/.installed-test-all: EXTRAS := test,dev,scipy,viz,examples,oracles

$(VENV)/.installed-%: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --editable '.[$(EXTRAS)]'
	touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
