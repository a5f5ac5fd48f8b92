"""Build the wheel and the sdist, and try what the first page says in new environments without the repository.

    python tools/try_wheel.py                          # the wheel, with this interpreter and the newest dependencies
    python tools/try_wheel.py --python python3.12 --python python3.13
    python tools/try_wheel.py --lowest                 # with the lower bounds of pyproject.toml
    python tools/try_wheel.py --sdist                  # install the sdist instead of the wheel

It needs the package build. The files are kept in dist/.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
LEFT_OUT = ("AEVB_", "JAX_", "XLA_", "PYTHON", "VIRTUAL_ENV")  # variables of this environment
ROWS = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="interpreter to try; may be repeated")
    parser.add_argument("--lowest", action="store_true", help="install the lower bounds of the dependencies")
    parser.add_argument("--sdist", action="store_true", help="install the sdist")
    options = parser.parse_args()
    files = build()
    for python in options.python or [sys.executable]:
        with tempfile.TemporaryDirectory() as scratch:
            try_out(Path(scratch), python, files["sdist" if options.sdist else "wheel"], options.lowest)


def build() -> dict[str, Path]:
    """Build both files into dist/; return them."""
    folder = REPOSITORY / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, REPOSITORY], check=True, stdout=subprocess.PIPE)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def try_out(scratch: Path, python: str, package: Path, lowest: bool) -> None:
    """Install a file in a new environment and run the commands of the first page in an empty folder."""
    began = time.monotonic()
    subprocess.run([python, "-m", "venv", scratch / "venv"], check=True)
    commands = scratch / "venv" / "bin"
    (scratch / "bounds.txt").write_text(lower_bounds() if lowest else "")
    install = [commands / "python", "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", scratch / "bounds.txt", package], check=True)
    installed = time.monotonic() - began

    work = scratch / "work"
    work.mkdir()
    (work / "own.csv").write_text(own_table())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    environment |= {"HOME": str(scratch), "PATH": f"{commands}:{os.environ['PATH']}"}

    def run(*words: str) -> str:
        result = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{' '.join(words)} failed:\n{result.stdout}{result.stderr}")
        return result.stdout

    facts = json.loads(run("aevb", "doctor", "--json"))
    assert not facts["problems"], facts["problems"]
    where = run("python", "-c", "import aevb; print(aevb.__file__)")
    assert str(REPOSITORY) not in where, where
    run("aevb", "demo", "--epochs", "2")
    run("aevb", "fit", "own.csv", "--max-epochs", "20")
    run("aevb", "sample", "runs/own", "--rows", "5", "--output", "new.csv")
    assert len((work / "new.csv").read_text().splitlines()) == 6
    for report in ("runs/demo/report.html", "runs/demo/explorer.html", "runs/own/report.html"):
        assert (work / report).stat().st_size > 10_000, report
    seconds = time.monotonic() - began
    versions = {name: facts["facts"][name] for name in ("python", "jax", "numpy", "scikit-learn", "numpyro")}
    print(f"{package.name}: works, {installed:.0f} s for the installation, {seconds:.0f} s in all. {versions}")


def lower_bounds() -> str:
    """Return the lower bounds of pyproject.toml as constraints."""
    found = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return "\n".join(re.sub(r">=([\d.]+).*", r"==\1", line) for line in found)


def own_table() -> str:
    """Return a small table with numbers, labels and missing entries."""
    rows = [f"{20 + k % 50},{'ab'[k % 2]},{'' if k % 7 == 0 else k * 1.5}" for k in range(ROWS)]
    return "\n".join(["age,group,income", *rows]) + "\n"


if __name__ == "__main__":
    main()
