"""Check that a type checker in strict mode knows the type of every public name.

    python tools/check_types.py

A program that uses each name of tests/project/public_api.txt once is written and given to pyright, as a user's program
would be: a type that is unknown, or that a decorator loses, is an error there.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
NAMES = REPOSITORY / "tests" / "project" / "public_api.txt"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "program.py").write_text(program(NAMES.read_text(encoding="utf-8")), encoding="utf-8")
        settings = {"include": ["program.py"], "extraPaths": [str(REPOSITORY / "src")], "pythonVersion": "3.11"}
        (Path(scratch) / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "-p", scratch]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout)
    for each in found["generalDiagnostics"]:
        print(each["message"])
    if found["summary"]["filesAnalyzed"] != 1 or found["summary"]["errorCount"]:
        sys.exit(f"Public types: {found['summary']}")


def program(names: str) -> str:
    """Return a program that uses the names of the file: classes, their members, functions.

    Example:
        >>> print(program("[aevb]\\nclass VAE(latent_dim=None)\\nVAE.fit(self, X)\\nload(folder)"))
        # pyright: strict, reportUnusedExpression=false
        import aevb
        aevb.VAE
        def of_aevb_VAE(it: aevb.VAE):
            it.fit
        aevb.load
    """
    module, lines, last = "", ["# pyright: strict, reportUnusedExpression=false"], ""
    for line in names.splitlines():
        if line.startswith("["):
            module = line.strip("[]")
            lines.append(f"import {module}")
        elif found := re.match(r"(class )?(\w+)(?:\.(\w+))?", line):
            _, name, member = found.groups()
            if member is None:
                lines.append(f"{module}.{name}")
            elif last != f"{module}.{name}":
                last = f"{module}.{name}"
                lines += [f"def of_{module.replace('.', '_')}_{name}(it: {last}):", f"    it.{member}"]
            else:
                lines.append(f"    it.{member}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
