"""Run both commands of the README, `make test` and `make demo`, from clean clones in typical user environments.

    python tools/try_environments.py                     # three runs that cover all of them, about five minutes each
    python tools/try_environments.py root+private space  # two runs: as root in a private folder; in a path with a space
    python tools/try_environments.py --list

An environment is one of the names in `ENVIRONMENTS`, or several joined by +. Run it as root to test both users.
PYTEST_ADDOPTS is passed on: PYTEST_ADDOPTS="-k keeping" runs only a few tests. It tests the last commit.
"""

import argparse
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COMMANDS = ("test", "demo")
ORDINARY_USER = 12345  # has no entry in the list of users, as in many containers
ENVIRONMENTS = {
    "root": "as root",
    "user": "as an ordinary user",
    "private": "below a folder of mode 0700",
    "space": "in a path with a space",
    "umlaut": "in a path with an umlaut",
    "no-home": "with an empty HOME",
    "empty-home": "with an empty home folder",
    "read-only-home": "with a read-only home folder",
    "terminal": "in a terminal (by default there is no TTY)",
    "c-locale": "with LANG=C",
    "tmpdir": "with TMPDIR elsewhere",
    "beside": "with a second `make test` started in the same clone at the same time",
}
DEFAULT = (
    "root+private+space+no-home+c-locale",
    "user+umlaut+read-only-home+tmpdir+terminal",
    "user+empty-home+beside",
)
# Variables of the caller's environment that are not passed on, because they describe this machine.
LEFT_OUT = (
    "JAX_",
    "XLA_",
    "AEVB_",
    "XDG_",
    "PYTHON",
    "VIRTUAL_ENV",
    "LC_",
    "LANG",
    "MPL",
    "MAKE",
    "HOME",
    "USER",
    "TMPDIR",
)


def make_place(names: set[str], scratch: Path) -> tuple[Path, dict[str, str]]:
    """Clone the repository into a folder of the environment; return the clone and the environment variables."""
    folders = {"umlaut": "ümläut", "space": "with a space", "private": "private"}
    above = scratch.joinpath(*(folder for name, folder in folders.items() if name in names))
    above.mkdir(parents=True, exist_ok=True)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    home, temporary = scratch / "home", scratch / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    variables["HOME"] = "" if "no-home" in names else str(home)
    variables["LANG"] = "C" if "c-locale" in names else "C.UTF-8"
    if "tmpdir" in names:
        variables["TMPDIR"] = str(temporary)
    clone = above / "aevb"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", REPOSITORY, clone], check=True)
    if "user" in names and os.geteuid() == 0:
        for path in (scratch, *scratch.rglob("*")):
            os.chown(path, ORDINARY_USER, ORDINARY_USER, follow_symlinks=False)
    if "read-only-home" in names:
        home.chmod(0o500)
    if "private" in names:
        above.chmod(0o700)
    return clone, variables


def run(command: list[str], clone: Path, variables: dict[str, str], log: Path, names: set[str]) -> int:
    """Run a command in a clone, with its output written to a file; return its exit code."""
    identity = {"user": ORDINARY_USER, "group": ORDINARY_USER, "extra_groups": []}
    options = identity if "user" in names and os.geteuid() == 0 else {}
    with open(log, "wb") as file:
        if "terminal" not in names:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            return subprocess.run(command, cwd=clone, env=variables, **streams, **options).returncode
        master, slave = pty.openpty()
        with subprocess.Popen(
            command, cwd=clone, env=variables, stdin=slave, stdout=slave, stderr=slave, **options
        ) as process:
            os.close(slave)
            while chunk := read_terminal(master):
                file.write(chunk)
        os.close(master)
        return process.returncode


def read_terminal(master: int) -> bytes:
    """Return what was written to a terminal; nothing when its last process has ended."""
    try:
        return os.read(master, 2**16)
    except OSError:
        return b""


def try_one(environment: str, commands: list[str], keep: bool) -> bool:
    """Run the commands in one environment and print the outcome; return whether all succeeded."""
    names = set(environment.split("+"))
    if "root" in names and os.geteuid() != 0:
        print(f"{environment}: NOT TRIED, you are not root", flush=True)
        return True
    scratch = Path(tempfile.mkdtemp(prefix="aevb-"))
    scratch.chmod(0o755)
    clone, variables = make_place(names, scratch)
    succeeded = True
    for target in commands:
        beside = ["beside"] if "beside" in names and target == "test" else []
        codes, start = {}, time.monotonic()

        def work(which, target=target, codes=codes):
            codes[which] = run(["make", target], clone, variables, scratch / f"{which}-{target}.log", names)

        threads = [threading.Thread(target=work, args=(which,)) for which in ("make", *beside)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for which, code in codes.items():
            log = scratch / f"{which}-{target}.log"
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            verdict = "ok" if code == 0 else f"FAILED with code {code}, see {log}"
            print(
                f"{environment}: make {target}: {verdict}, {time.monotonic() - start:.0f} s: {''.join(last)}",
                flush=True,
            )
            succeeded = succeeded and code == 0
    if succeeded and not keep:
        shutil.rmtree(scratch)
    return succeeded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", default=DEFAULT, help="names joined by +")
    parser.add_argument("--command", choices=COMMANDS, action="append", help="only this one; may be given twice")
    parser.add_argument("--keep", action="store_true", help="keep the clones; those of failures are kept anyway")
    parser.add_argument("--list", action="store_true", help="list the environments")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{name:15} {what}" for name, what in ENVIRONMENTS.items()))
        return 0
    for environment in arguments.environments:
        if unknown := set(environment.split("+")) - set(ENVIRONMENTS):
            parser.error(
                f"{environment}: {', '.join(sorted(unknown))} not known. Choose from {', '.join(ENVIRONMENTS)}."
            )
    results = [try_one(name, arguments.command or list(COMMANDS), arguments.keep) for name in arguments.environments]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
