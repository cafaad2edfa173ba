# `make run` plays the main example and `make test` runs the tests: both need only python3 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test

run: $(VENV)/.installed-run
	$(BIN)/python examples/digits.py

test: $(VENV)/.installed-test
	$(BIN)/pytest -n auto

$(VENV)/.installed-run: EXTRAS := scipy,examples
$(VENV)/.installed-test: EXTRAS := test,dev,scipy,viz,examples

$(VENV)/.installed-%: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --editable '.[$(EXTRAS)]'
	touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
