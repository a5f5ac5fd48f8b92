"""Commands that pages name exist and take the options that are written: in blocks as a whole, within text by name."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from aevb.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [str(path.relative_to(ROOT)) for path in PAGES if "decisions" not in path.parts]  # which are history
# Options of other programs; those of figures are words.
OTHERS = {"--signal", "--nodes", "--hypothesis-seed", "--pdb", "--xla_force_host_platform_device_count"}


def read(page) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def commands_of(text) -> list[str]:
    """Return the commands in blocks, without what stands before `aevb` (a prompt, settings, a launcher)."""
    blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, flags=re.DOTALL)
    lines = "\n".join(blocks).splitlines()
    return [line[line.index("aevb ") :] for line in lines if re.match(r"(\$ |srun |[A-Z]+=\S+ )*aevb ", line)]


def parse(command):
    app.parse_args(shlex.split(command, comments=True)[1:], exit_on_error=False, print_error=False)


@cache
def options_of(name) -> set[str]:
    if name == "data":  # has commands of its own
        return {"--help"}
    return {name for argument in app[name].assemble_argument_collection() for name in argument.names} | {"--help"}


def unknown_in(text) -> list[str]:
    """Return what is wrong within a text: `aevb ...` with an unknown command or option, and options of no command."""
    every = {name for command in app if not command.startswith("-") for name in options_of(command)}
    wrong = []
    for code in re.findall(r"`([^`\n]+)`", text):
        words = code.split()
        if words[0] == "aevb" and len(words) > 1 and not words[1].startswith("-"):
            known = options_of(words[1]) if words[1] in app else set()
            wrong += [code] * (not known or any(word.startswith("--") and word not in known for word in words))
        elif words[0].startswith("--") and words[0].partition("=")[0] not in every | OTHERS:
            wrong.append(code)
    return wrong


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_pages_are_understood(page):
    text = read(page)
    for command in commands_of(text):
        parse(command)
    assert unknown_in(re.sub(r"```.*?```", "", text, flags=re.DOTALL)) == []


def test_the_command_of_the_kubernetes_manifest_is_understood():
    (command,) = re.findall(r"aevb fit [^$]+\$JOB_COMPLETION_INDEX", read("docs/kubernetes.yaml"))
    parse(command.replace("$JOB_COMPLETION_INDEX", "3"))


def test_make_has_the_targets_that_pages_name():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))
    named = {
        name for page in PAGES for name in re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", read(page), re.MULTILINE)
    }
    assert {first or second for first, second in named} - targets == set()


def test_wrong_commands_are_noticed():
    assert len(commands_of("```bash\nA=0 aevb fit x\nsrun aevb fit y\nls\n```\n```console\n$ aevb demo\n```")) == 3
    with pytest.raises(Exception, match="--latent-dims"):
        parse("aevb fit x.csv --latent-dims 3")
    assert unknown_in("`aevb fit --target y` `--target` `aevb fits x` `aevb fit --targets y` `--targets`") == [
        "aevb fits x",
        "aevb fit --targets y",
        "--targets",
    ]
