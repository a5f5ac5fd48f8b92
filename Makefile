# Needs python3 >= 3.11, pip and make. The first call creates .venv and installs what its target
# needs; later calls start immediately. To use another interpreter: make PYTHON=python3.12 test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-thorough test-slow mutants check check-page bench bench-quick docs wheel-test clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-demo ## learn MNIST digits and write a report, into runs/
	@$(BIN)/python -m aevb demo

test: $(VENV)/.installed-test ## run the default tests, in four minutes
	@$(BIN)/python -m pytest

test-thorough: $(VENV)/.installed-test ## run more cases, as CI does, in seven minutes
	@$(BIN)/python -m pytest -m 'thorough and not slow'

test-slow: $(VENV)/.installed-test $(VENV)-s3/.installed ## run the slow tests
	@$(BIN)/python -m pytest -m slow -n 0

mutants: $(VENV)/.installed-mutants ## break the code in 208 ways and check that tests detect it; takes an hour
	@PYTHONHASHSEED=0 $(BIN)/python tools/mutants.py
	@$(BIN)/python tools/mutants.py --show

check: $(VENV)/.installed-dev ## check format, lint and types
	@$(BIN)/python -m ruff format --check
	@$(BIN)/python -m ruff check
	@$(BIN)/python -m pyright
	@$(BIN)/python tools/check_types.py

check-page: ## check the types of the explorer page; needs npx
	@npx --yes -p typescript tsc -p src/aevb/explorer/page

bench: $(VENV)/.installed-test ## run the benchmarks
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/race.py
	@$(BIN)/python benchmarks/posteriors.py

bench-quick: $(VENV)/.installed-test ## compare the speed with stored ratios, in two minutes
	@$(BIN)/python benchmarks/quick.py

docs: $(VENV)/.installed-docs ## build the documentation
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "Wrote docs/_build/html/index.html"

wheel-test: $(VENV)/.installed-release ## build wheel and sdist, and try them in new environments
	@$(BIN)/python tools/try_wheel.py

clean: ## remove .venv, caches and built files, but not runs/
	rm -rf $(VENV) $(VENV)-s3 .cache .hypothesis .pytest_cache .ruff_cache dist docs/_build
	find src tests docs -name __pycache__ -prune -exec rm -rf {} +

# One stamp per extra, so that a target installs only what it needs. Rarely imported modules are compiled on import.
# Two concurrent calls of make install one after the other (where flock exists), and the second has nothing to do.
# compileall replaces pip's compilation, which uses only one core.
NOT_COMPILED := '/(tests?|pip|setuptools|pkg_resources|fontTools|pygments/lexers|pallas|mosaic|jax/experimental|xarray|arviz|playwright)/'
$(VENV)/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "aevb needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	"Choose another: make PYTHON=python3.12"; exit 1; }
	@mkdir -p $(VENV)
	@set -e; exec 9> $(VENV)/.lock; ! command -v flock > /dev/null || flock 9; \
	if [ -f $@ ] && [ ! pyproject.toml -nt $@ ] && [ ! constraints.txt -nt $@ ]; then exit 0; fi; \
	echo "Installing aevb[$*] into $(VENV) ..."; \
	[ -f $(VENV)/.created ] || { $(MAKE_VENV); touch $(VENV)/.created; }; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[$*]'; \
	$(BIN)/python -m compileall -qq -j 0 -x $(NOT_COMPILED) $(VENV)/lib || true; \
	touch $@

# A real S3 server and its client, for tests of faults: they need older versions of some packages than constraints.txt
# has, so they have an environment of their own, which finds everything else in .venv. Without them, tests are skipped.
$(VENV)-s3/.installed: $(VENV)/.installed-test
	@echo "Installing moto and s3fs into $(VENV)-s3 ..."; rm -rf $(VENV)-s3; \
	$(BIN)/python -m venv --without-pip $(VENV)-s3 && \
	$(BIN)/python -m pip --python $(VENV)-s3/bin/python install --quiet --disable-pip-version-check $(S3) && \
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(" + repr(sysconfig.get_path("purelib")) + ")")' \
	> $$($(VENV)-s3/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/aevb.pth && \
	touch $@ || echo "moto and s3fs cannot be installed; the tests with S3 will be skipped."
S3 := 'moto[server]==5.2.5' 's3fs==2026.9.0'

# Some systems ship venv without pip; then the system's pip installs it.
MAKE_VENV = $(PYTHON) -m venv $(VENV) > /dev/null 2>&1 || { $(PYTHON) -m venv --without-pip $(VENV) && \
	$(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
