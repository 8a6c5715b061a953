# Everything runs in .venv, which the first target that needs it creates. Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
CUDA   ?= cuda12
LOWEST ?= .venv-lowest
WHEELS ?= .venv-wheels
PYTHONS ?= python3.12 python3.13 python3.14 python3.13t python3.14t
PARITY ?= .venv-parity
# A Python that has PyTorch, and for benchmarks perhaps JAX; by default one on PATH, if there is one.
PARITY_PYTHON ?= $(shell for python in python3 python; do $$python -c '$(PEERS)' >/dev/null 2>&1 && command -v $$python && break; done)

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
PLUGINS := $(patsubst %/pyproject.toml,%,$(sort $(wildcard plugins/*/pyproject.toml)))
# The same with what their own tests need, where they need more.
TESTED  := $(foreach plugin,$(PLUGINS),./$(plugin)$(shell grep -q '^test = ' $(plugin)/pyproject.toml && echo '[test]'))
SOURCES := framework $(wildcard plugins/*/leafgrad_* plugins/*/src/leafgrad_*)
PEERS   := from importlib.util import find_spec as f; from os.path import dirname as d; torch, jax = f("torch"), f("jax"); torch or exit(1); print(*{d(d(p.origin)) for p in (torch, jax) if p}, sep="\n")
# Files whose tests ask PyTorch, where there is one.
ASKING  := $(sort $(shell grep -lrE '"torch"|parity|def test_\w+\((.*, )?t[,)]' tests plugins/*/tests --include='test_*.py'))
GPU     := $(sort $(wildcard tests/benchmarks/gpu*.py))
REPORT  := docs/benchmarks/gpu.md
NATIVE  := plugins/leafgrad-native/tests
FAULTS  := tests/faults tests/distributed/test_launcher.py $(wildcard plugins/*/tests/test_faults.py plugins/*/tests/test_files.py plugins/*/tests/test_forks.py)
# One BLAS thread for each test process; two test processes with two threads each are slower than one. Bytecode is kept,
# in the venv: that of tests, for each process collects them, and of leafgrad, which tests import in many processes.
QUICKLY := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(VENV))/bytecode
PYTEST  := $(QUICKLY) $(BIN)/python -m pytest -q

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test slow faults sanitizers mutants coverage lowest versions parity wheels lint format docs bench gpu-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

demo: $(VENV)/.examples ## solve Burgers' equation in about a minute
	@$(BIN)/python examples/burgers.py --quick

test: $(VENV)/.test ## the whole suite: core, plugins, README and docs
	@$(PYTEST) -n $(JOBS) --dist loadfile

slow: $(VENV)/.test ## the tests that take longer than a few seconds
	@$(PYTEST) -n $(JOBS) --dist loadfile -m "slow and not gpu"

faults: $(VENV)/.test ## inject faults, some thousand times; writes the table in docs/reliability.md
	@$(PYTEST) $(FAULTS) -m "not gpu" --faults-report=docs/reliability.md

# Without tests that ask how fast it is, and for crashes, and without the one that forks while other threads start and end:
# a child of a fork hangs where one of them was in the allocator of GCC 12's address sanitizer, which stays locked there.
sanitizers: $(VENV)/.test ## the tests of leafgrad-native, with the C that they generate under ASan and UBSan, in an hour
	@LEAFGRAD_CC=$(abspath $(NATIVE)/sanitized.sh) LEAFGRAD_CACHE=$(abspath $(VENV))/sanitized LEAFGRAD_CC_TIMEOUT=600 \
		ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$$(cc -print-file-name=libasan.so) $(PYTEST) $(NATIVE) -m "not gpu" \
		--ignore $(NATIVE)/test_faults.py -k "not vector_code and not broken_compiler and not other_threads_compile"

mutants: $(VENV)/.test ## plant 200 faults in the source, and count those that the tests find, in some hours
	@$(QUICKLY) $(BIN)/python tests/mutants.py

coverage: $(VENV)/.test ## write docs/coverage.md: what each op can do
	@$(BIN)/leafgrad ops --markdown core > docs/coverage.md

lowest: $(LOWEST)/.test ## the whole suite on the lowest versions of the dependencies that are allowed
	@$(QUICKLY) $(LOWEST)/bin/python -m pytest -q -n $(JOBS) --dist loadfile

versions: ## the whole suite on each of PYTHONS that is to be had here, each in a venv of its own
	@for python in $(PYTHONS); do \
		if $$python -c "" 2> /dev/null; then \
			echo "$$python:"; $(MAKE) test PYTHON=$$python VENV=.venv-$$(echo $$python | tr / -) || exit; \
		else echo "$$python: not to be had here"; fi; done

parity: ## the tests that ask PyTorch, with the one of PARITY_PYTHON; skipped where there is none
	@if [ -n "$(PARITY_PYTHON)" ]; then $(MAKE) --no-print-directory $(PARITY)/.test && \
		$(QUICKLY) OMP_NUM_THREADS=1 $(PARITY)/bin/python -m pytest -q \
		-n $(JOBS) --dist loadfile -W ignore::DeprecationWarning:torch.jit._script $(ASKING); \
	else echo "parity: skipped, since no Python on PATH has PyTorch: make parity PARITY_PYTHON=..."; fi

wheels: $(VENV)/pyvenv.cfg ## build the wheels into dist/, and start leafgrad with all plugins from a venv that has them alone
	@rm -rf dist $(WHEELS)
	@$(PIP) wheel --no-deps --wheel-dir dist . $(PLUGINS:%=./%)
	@$(PYTHON) -m venv $(WHEELS)
	@$(WHEELS)/bin/python -m pip --quiet --quiet --disable-pip-version-check install dist/*.whl
	@cd dist && LEAFGRAD_STRICT_PLUGINS=1 $(abspath $(WHEELS))/bin/leafgrad plugins

lint: $(VENV)/.test $(VENV)/.dev ## ruff, mypy and the rules of the architecture
	@$(BIN)/ruff check --quiet --output-format concise
	@$(BIN)/ruff format --quiet --check || { echo "ruff format: run 'make format'"; exit 1; }
	@$(BIN)/mypy $(SOURCES)
	@$(PYTEST) -q --no-header tests/test_architecture.py

format: $(VENV)/.dev ## let ruff mend what it can
	@$(BIN)/ruff check --quiet --fix --exit-zero
	@$(BIN)/ruff format --quiet

docs: $(VENV)/.test $(VENV)/.docs ## the site, in docs/_build/html; a warning, or a link in it that leads nowhere, is an error
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env docs docs/_build/html

bench: ## every benchmark that needs no GPU; writes docs/benchmarks/cpu.md (with the peers that PARITY_PYTHON has)
ifneq ($(PARITY_PYTHON),)
	@$(MAKE) --no-print-directory $(PARITY)/.test
	@$(PARITY)/bin/python tests/benchmarks/page.py docs/benchmarks/cpu.md
else
	@$(MAKE) --no-print-directory $(VENV)/.test
	@$(BIN)/python tests/benchmarks/page.py docs/benchmarks/cpu.md
endif

gpu-check: $(VENV)/.test $(VENV)/.$(CUDA) ## tests and benchmarks on cuda:0; writes docs/benchmarks/gpu.md
	@mkdir -p $(dir $(REPORT))
	@$(PYTEST) -m gpu --gpu-report=$(REPORT)
	@for script in $(GPU); do $(BIN)/python $$script >> $(REPORT) || exit; done

clean: ## remove .venv, caches and builds
	@rm -rf $(VENV) .venv-* build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("leafgrad needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)

# One stamp for each extra: installed again when a pyproject.toml changes.
$(VENV)/.examples $(VENV)/.dev $(VENV)/.docs $(VENV)/.cuda12 $(VENV)/.cuda13: $(VENV)/.%: pyproject.toml $(VENV)/pyvenv.cfg
	@$(PIP) install --editable ".[$*]"
	@touch $@

$(VENV)/.test: pyproject.toml $(PLUGINS:%=%/pyproject.toml) $(VENV)/pyvenv.cfg
	@$(PIP) install --editable ".[test]" $(TESTED:%=--editable '%')
	@touch $@

# pip knows no lowest versions, but uv does.
$(LOWEST)/.test: pyproject.toml $(PLUGINS:%=%/pyproject.toml)
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip --quiet --quiet --disable-pip-version-check install uv
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		--editable ".[test]" $(TESTED:%=--editable '%')
	@touch $@

# PyTorch's own environment is not touched: the new one finds PyTorch there, and JAX for benchmarks.
$(PARITY)/.test: pyproject.toml $(PLUGINS:%=%/pyproject.toml)
	@$(PARITY_PYTHON) -m venv $(PARITY)
	@$(PARITY)/bin/python -m pip --quiet --quiet --disable-pip-version-check install --editable ".[test]" $(TESTED:%=--editable '%')
	@$(PARITY_PYTHON) -c '$(PEERS)' > $$($(PARITY)/bin/python -c 'import site; print(site.getsitepackages()[0])')/peers.pth
	@touch $@
