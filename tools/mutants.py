"""Break the code in small ways, one at a time, and check whether its tests detect it.

The operators are mutmut's and two more; the mutants are a random sample, the same number from each of four packages. A
first pass runs the package's tests on the unchanged code and records which functions each test calls. Each mutant is
then tested by the tests that call its function, fastest first, followed by the others in the same files. Each run is a
fork of one process that has imported everything but aevb. Its CPU time is limited instead of its wall time, so that the
result does not depend on the load of the machine.

Results are appended to `.cache/mutants/results.jsonl`, and a second call resumes from there; remove the folder after
changing the code or its tests. `--show` prints the counts and the survivors.
"""

import argparse
import compileall
import json
import os
import py_compile
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from time import process_time
from types import CodeType
from typing import NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_string

REPOSITORY = Path(__file__).resolve().parents[1]
WORK = REPOSITORY / ".cache" / "mutants"
COPY, BASELINE, RESULTS = WORK / "copy", WORK / "baseline.json", WORK / "results.jsonl"
REFUSALS = (
    "bad_arguments bad_data bad_new_data unfitted clone_and_parameters representations "
    "copies_train_without_progress_bars automatic_likelihood integers_beyond_32_bits "
    "a_refused_fit_leaves_the_model_unchanged the_advice_for_integers_up_to_255_mentions_grey_levels "
    "a_single_hidden_layer_may_be_given_as_a_number"
)
PARTS = {  # the sources to mutate, and the tests that should detect it
    "validation": (
        [
            "src/aevb/matrices.py",
            "src/aevb/data/checks.py",
            "src/aevb/data/reading.py",
            "src/aevb/vae/checks.py",
            "src/aevb/vae/conventions.py",
        ],
        [
            "tests/test_matrices.py",
            "tests/data/test_checks.py",
            "tests/data/test_reading.py",
            "tests/vae/test_settings.py",
            "tests/vae/test_conventions.py",
            "tests/vae/test_bad_input.py",
        ]
        + [f"tests/vae/test_vae.py::test_{name}" for name in REFUSALS.split()],
    ),
    "saving": (
        ["src/aevb/persistence", "src/aevb/files.py"],
        [
            "tests/test_files.py",
            "tests/persistence/test_persistence.py",
            "tests/persistence/test_names.py",
            "tests/persistence/test_model_files.py",
        ],
    ),
    "estimators": (
        ["src/aevb/estimators"],
        [
            "tests/estimators",
            "tests/exact/test_linear_gaussian.py",
            "tests/exact/test_full_vb.py",
            "tests/project/test_import.py",
        ],
    ),
    "distributions": (["src/aevb/distributions"], ["tests/distributions"]),
}
NEVER_MUTATED = {"isinstance", "len"}  # as in mutmut: the result is an immediate error
# pytest would warn that plugins imported before the fork cannot be rewritten.
PYTEST = ["-qx", "-n0", "-mnot slow", "-pno:cacheprovider", "-Wignore::pytest.PytestAssertRewriteWarning"]
OUTCOMES = {0: "survived", 1: "killed", 2: "killed", 4: "killed", None: "stopped"}  # by exit code; 2, 4: no import
SECONDS = 60  # of CPU time, in addition to five times what the tests take


# ---- mutants ---------------------------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    part: str
    path: str
    number: int  # of the file's mutants
    line: int
    before: str
    after: str


def negated(node: cst.If):
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), _in_brackets(node.test)))


def returned(node: cst.Return):
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield node.with_changes(value=cst.Name("None"))


def _in_brackets(node):
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


OPERATORS = [*mutation_operators, (cst.If, negated), (cst.Return, returned)]


class _Places(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self):
        self.changes = []  # (line, node, changed node)

    def on_visit(self, node):
        if self._is_left_alone(node):
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind) and not (operator is operator_string and self._is_prose(node)):
                line = self.get_metadata(PositionProvider, node).start.line
                self.changes += [(line, node, changed) for changed in operator(node)]
        return True

    def _is_prose(self, node):
        return not isinstance(node, cst.SimpleString) or " " in node.value

    def _is_left_alone(self, node):
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom):
            return True
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.BaseString):
            return True  # docstrings
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in NEVER_MUTATED


def mutants_of(part, path):
    """Return the mutants of a file, each with a function that returns the full source."""
    wrapper, places = MetadataWrapper(cst.parse_module((REPOSITORY / path).read_text())), _Places()
    wrapper.visit(places)
    show = wrapper.module.code_for_node
    return [
        (
            Mutant(part, path, number, line, show(node).strip(), show(changed).strip()),
            lambda node=node, changed=changed: wrapper.module.deep_replace(node, changed).code,
        )
        for number, (line, node, changed) in enumerate(places.changes)
    ]


def is_new(path, text):
    """Whether the mutant is valid Python and differs from the original."""
    try:
        return compile(text, "", "exec") != compile((REPOSITORY / path).read_text(), "", "exec")
    except SyntaxError:
        return False


def sample(part, number, seed):
    """Draw mutants of a package, each with its full source."""
    files = sorted(str(file.relative_to(REPOSITORY)) for place in PARTS[part][0] for file in _python_files(place))
    every = [pair for path in files for pair in mutants_of(part, path)]
    random.Random(seed).shuffle(every)
    print(f"{part}: {number} of {len(every)} mutants", flush=True)
    pairs = ((mutant, text()) for mutant, text in every)
    return islice((pair for pair in pairs if is_new(pair[0].path, pair[1])), number)


def _python_files(place):
    path = REPOSITORY / place
    return [path] if path.suffix == ".py" else path.rglob("*.py")


# ---- tests -----------------------------------------------------------------------------------------------------------


class _Watch:
    """Pytest plugin: runs the tests in a given order, and records failures, and the time and calls of each test."""

    def __init__(self, order=None, trace=False):
        self.order, self.trace, self.tests, self.failed = order, trace, {}, None

    def pytest_collection_modifyitems(self, items):
        if self.order is not None:
            place = {name: number for number, name in enumerate(self.order)}
            items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    def pytest_runtest_logreport(self, report):
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and self.failed is None:
            self.failed = f"import: {report.nodeid}"

    def pytest_runtest_logstart(self, nodeid):
        self.start, self.called = process_time(), set()
        if self.trace:
            sys.settrace(self._note)

    def pytest_runtest_logfinish(self, nodeid):
        sys.settrace(None)
        self.tests[nodeid] = {"seconds": process_time() - self.start, "calls": sorted(self.called)}

    def _note(self, frame, event, argument):
        code = frame.f_code
        if code.co_filename.startswith(f"{COPY}/src"):
            self.called.add(f"{os.path.relpath(code.co_filename, COPY)}:{code.co_firstlineno}")


def run_tests(arguments, seconds, order=None, trace=False):
    """Run pytest in a fork; return its exit code (None if it was killed) and what the plugin recorded."""
    report = WORK / "report.json"
    report.unlink(missing_ok=True)
    with warnings.catch_warnings(action="ignore"):  # JAX warns about forks, but it has no threads yet
        child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(3600)  # in case it hangs
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        os.chdir(COPY)
        sys.path.insert(0, str(COPY / "src"))
        with open(WORK / "output.txt", "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        watch, code = _Watch(order, trace), 70
        if trace:
            time.process_time = lambda: 0.0  # some tests have a time limit, and tracing is slow
        try:
            import pytest

            code = int(pytest.main([*PYTEST, *arguments], plugins=[watch]))
            report.write_text(json.dumps({"tests": watch.tests, "failed": watch.failed}))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return code, json.loads(report.read_text()) if report.exists() else {"tests": {}, "failed": None}


def note_calls(part):
    """Return the time and calls of each test; files run separately, because compiled functions are not called again."""
    noted = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    for file in files_of(part):
        if file not in noted:
            selected = [name for name in PARTS[part][1] if name.split("::")[0] == file] or [file]
            code, report = run_tests(selected, 1800, trace=True)
            if code not in (0, 5):  # 5: a source file without doctests
                sys.exit(f"{file} fails on the unchanged code ({code}, {report['failed']}): see {WORK / 'output.txt'}")
            noted[file] = report["tests"]
            BASELINE.write_text(json.dumps(noted))
            seconds = sum(test["seconds"] for test in report["tests"].values())
            print(f"{part}: {file}: {len(report['tests'])} tests, {seconds:.0f} s", flush=True)
    return {file: noted[file] for file in files_of(part)}


def files_of(part):
    """Return the files with a package's tests: the sources, for their doctests, and then the others."""
    sources, tests = PARTS[part]
    paths = [path for place in tests for path in _test_files(place)]
    return list(dict.fromkeys([*sources, *(str(path.relative_to(COPY)) for path in paths)]))


def _test_files(place):
    path = COPY / place.split("::")[0]
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def chosen_tests(mutant, noted):
    """Return the test files that call the mutant's function, their tests in order, and their total seconds."""
    owners = {f"{mutant.path}:{line}" for line in owners_of((REPOSITORY / mutant.path).read_text(), mutant.line)}

    def calls(test):
        called = set(test["calls"])
        return called & owners if owners else any(call.split(":")[0] == mutant.path for call in called)

    files = [file for file, tests in noted.items() if any(calls(test) for test in tests.values())]
    files = files or [file for file, tests in noted.items() if tests]  # it runs only at import, if at all
    found = {name: test for file in files for name, test in noted[file].items()}
    order = sorted(found, key=lambda name: (not calls(found[name]), found[name]["seconds"]))
    return files, order, sum(test["seconds"] for test in found.values())


def owners_of(source, line):
    """Return the first lines of the functions that contain a line; none for module-level and class-level lines."""
    functions = []

    def visit(code):
        lines = {number for _, _, number in code.co_lines() if number}
        functions.append((code.co_firstlineno, lines, code.co_flags & 0x2))  # has local variables: a function
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                visit(constant)

    visit(compile(source, "", "exec"))
    inside = [(first, is_function) for first, lines, is_function in functions if line in lines]
    return [first for first, is_function in inside if is_function]


# ---- the run ---------------------------------------------------------------------------------------------------------


def prepare():
    """Copy what the tests need, and import what most of them use."""
    shutil.rmtree(COPY, ignore_errors=True)
    for name in ("src", "tests", "docs"):
        shutil.copytree(REPOSITORY / name, COPY / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, COPY)
    checked = py_compile.PycInvalidationMode.CHECKED_HASH  # two mutants may have the same size and modification time
    compileall.compile_dir(COPY / "src", quiet=2, invalidation_mode=checked)
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(COPY / "src"),
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(REPOSITORY / ".cache" / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
    import runpy

    os.environ["XLA_FLAGS"] = " ".join(runpy.run_path(str(REPOSITORY / "tests" / "conftest.py"))["QUICK_TO_COMPILE"])
    # Not BlackJAX: it computes on import, and the threads that JAX then starts would be missing in a fork.
    import equinox  # noqa: F401
    import numpyro  # noqa: F401
    import optax  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.utils.estimator_checks  # noqa: F401


def run(parts, number, seed):
    prepare()
    for part in parts:
        noted = note_calls(part)
        for mutant, text in sample(part, number, seed):
            if not any(row["path"] == mutant.path and row["number"] == mutant.number for row in results()):
                try_out(mutant, text, noted)


def try_out(mutant, text, noted):
    """Run the tests on a mutant and record the outcome."""
    files, order, seconds = chosen_tests(mutant, noted)
    (COPY / mutant.path).write_text(text)
    code, report = run_tests(files, SECONDS + 5 * seconds, order)
    shutil.copy(REPOSITORY / mutant.path, COPY / mutant.path)
    outcome = OUTCOMES.get(code, "untried")
    row = mutant._asdict() | {"outcome": outcome, "by": report["failed"], "code": code, "tests": len(order)}
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{outcome:9}{mutant.path}:{mutant.line}: {mutant.before[:60]!r} -> {mutant.after[:60]!r}", flush=True)


def results():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def show():
    rows = results()
    counts = Counter((row["part"], row["outcome"]) for row in rows)
    for part in PARTS:
        print(part, {outcome: counts[part, outcome] for outcome in ("killed", "stopped", "survived", "untried")})
    for row in rows:
        if row["outcome"] == "survived":
            print(f"{row['path']}:{row['line']}\n  - {row['before']}\n  + {row['after']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--number", type=int, default=52, help="mutants from each of the four packages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print the results without running anything")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    show() if arguments.show else run(arguments.part or PARTS, arguments.number, arguments.seed)
