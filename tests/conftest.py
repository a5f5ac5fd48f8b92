import gc
import os
import sys
from pathlib import Path

import pytest

TESTS = str(Path(__file__).resolve().parent)
# Compiled programs are shared by the workers and by later runs.
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# NumPyro orders a distribution's arrays by a set of strings: if the order differs, compiled programs are not reused.
os.environ.setdefault("PYTHONHASHSEED", "0")

# Most of the time is spent compiling hundreds of small programs that run once. In the workers of the default tests, XLA
# therefore optimizes little, which makes that 3.5 times faster, and each worker uses one thread, so that they do not
# compete for cores. `make test-slow` and `pytest -n0` compile as users do; the default tests do with XLA_FLAGS="".
QUICK_TO_COMPILE = [
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
]
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_TO_COMPILE))


SHIFT = int(os.environ.get("AEVB_TEST_SEED", "0"))  # shifts the seeds of all tests, to find those that pass by luck


def pytest_configure():
    """Shift the seeds in the tests, but not those of the package itself."""
    if SHIFT:
        import jax
        import numpy as np

        jax.random.key = _shifted(jax.random.key)
        np.random.default_rng = _shifted(np.random.default_rng)


def _shifted(function):
    def shifted(seed=None, *arguments, **keywords):
        if isinstance(seed, int) and sys._getframe(1).f_code.co_filename.startswith(TESTS):
            seed += 1_000_003 * SHIFT
        return function(seed, *arguments, **keywords)

    return shifted


LONG_EXAMPLES = {
    "aevb.report.report.write_report",
    "aevb.vae.sequence.SequenceVAE",
}  # of docstrings, which cannot be marked where they are


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.thorough)


def pytest_collection_finish():
    """Exclude imported objects from garbage collection, and collect what tracing leaves less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def _float64(request):
    """`@pytest.mark.float64` gives a test 64-bit arrays; all others use 32 bits."""
    if request.node.get_closest_marker("float64") is None:
        yield
    else:
        import jax

        with jax.enable_x64(True):
            yield


@pytest.fixture
def gradient_and_differences():
    """A function that returns the gradient of ``bound(vector, noise)`` and central differences, in one program."""
    import jax
    import numpy as np

    def both(bound, vector, noise, h=1e-5):
        steps = np.concatenate([h * np.eye(len(vector)), -h * np.eye(len(vector))])

        @jax.jit
        def evaluate(vector, noise):
            return jax.grad(bound)(vector, noise), jax.vmap(bound, (0, None))(vector + steps, noise)

        gradient, values = map(np.asarray, evaluate(vector, noise))
        return gradient, np.subtract(*np.split(values, 2)) / (2 * h)

    return both
