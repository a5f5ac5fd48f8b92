"""Damaged and hostile model files: one error, nothing silent, nothing run; and saves that fail half-way."""

import errno
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors import numpy as safetensors

from aevb import VAE, ModelFileError, load
from aevb.files import digest, parse_json, sealed, unsealed
from aevb.models import split

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng(0)
# Not by default_rng, which AEVB_TEST_SEED shifts: what an older version made of these rows is kept in a file.
X = (np.random.Generator(np.random.PCG64(0)).random((60, 4)) < [0.1, 0.9, 0.5, 0.2]).astype(np.float32)
FILES = Path(__file__).parent / "files"


@pytest.fixture(scope="module")
def fitted():
    return [
        VAE(latent_dim=1, hidden=(3,), max_epochs=2, optimizer="sgd", progress=False, random_state=seed).fit(X)
        for seed in (0, 1)
    ]


@pytest.fixture
def folder(fitted, tmp_path):
    return fitted[0].save(tmp_path / "model")


def arrays_of(folder):
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def parameters(vae):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(split((vae.generative_, vae.recognition_)).parameters)]


def same(one, other):
    return all(np.array_equal(left, right) for left, right in zip(parameters(one), parameters(other), strict=True))


def assert_refused(folder):
    start = time.process_time()
    with pytest.raises(ModelFileError) as error:
        load(folder)
    assert time.process_time() - start < 1
    assert str(folder) in str(error.value)


# ---- damage ----------------------------------------------------------------------------------------------------------


def damage(folder, stride):
    """Cut each file at every `stride`-th byte, and flip a bit of that byte: each must be refused."""
    for path in (folder / "model.json", arrays_of(folder)):
        whole = path.read_bytes()
        for place in range(0, len(whole), stride):
            path.write_bytes(whole[:place])
            assert_refused(folder)
            flipped = bytearray(whole)
            flipped[place] ^= 1 << RNG.integers(8)
            path.write_bytes(flipped)
            assert_refused(folder)
        path.write_bytes(whole)
    load(folder)


def test_truncated_and_flipped_files_are_refused(folder):
    damage(folder, stride=41)


@pytest.mark.slow
def test_every_truncation_and_every_flipped_byte_is_refused(folder):
    damage(folder, stride=1)


def test_an_older_format_still_loads():
    vae = load(FILES / "model-format-1")
    np.testing.assert_allclose(vae.transform(X[:5]).ravel(), np.loadtxt(FILES / "model-format-1-codes.txt"), rtol=1e-5)


# ---- hostile contents, with right checksums --------------------------------------------------------------------------


def rewrite(folder, change, change_arrays=lambda arrays: arrays):
    """Change what the files say, and seal them again, as an attacker would."""
    document = unsealed((folder / "model.json").read_text())
    path = arrays_of(folder)
    data = safetensors.save(change_arrays(safetensors.load(path.read_bytes())))
    path.unlink()
    name = f"arrays-{digest(data)[:16]}.safetensors"
    (folder / name).write_bytes(data)
    document["arrays"] = {"file": name, "sha256": digest(data)}
    document = change(document)
    (folder / "model.json").write_text(sealed(document) if isinstance(document, dict) else document)


def put(value, *place):
    def change(document):
        target = document
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = value
        return document

    return change


def drop(*place):
    def change(document):
        target = document
        for step in place[:-1]:
            target = target[step]
        del target[place[-1]]
        return document

    return change


BAD_VALUES = [
    "os.system",
    "__import__('os')",
    {"$type": "builtins.eval"},
    [[]],
    -1,
    1e300,
    True,
    "\x00",
    "../../etc/passwd",
]
PLACES = [
    ("arguments",),
    ("arguments", "latent_dim"),
    ("arguments", "likelihood"),
    ("arguments", "learner"),
    ("arguments", "activation"),
    ("arguments", "posterior"),
    ("fitted", "n_features_in_"),
    ("fitted", "likelihood_"),
    ("fitted", "history_"),
    ("own_networks",),
    ("feature_names",),
    ("arrays",),
    ("arrays", "file"),
    ("format",),
]
PAYLOADS = {
    f"{'.'.join(place)} = {value!r}": put(value, *place)
    for place in PLACES
    for value in BAD_VALUES
    if value != "../" or place
}
# These are right for a model that happens to be small, or only text.
for harmless in ("arguments.latent_dim = True",):
    PAYLOADS.pop(harmless, None)
PAYLOADS |= {
    "huge layer": put([10**9], "arguments", "hidden"),
    "huge latent": put(10**12, "arguments", "latent_dim"),
    "huge width": put(10**12, "fitted", "n_features_in_"),
    "many layers": put([3] * 100_000, "arguments", "hidden"),
    "unknown argument": put(1, "arguments", "__class__"),
    "planted attribute": put("planted", "fitted", "transform"),
    "missing argument": drop("fitted", "scale_"),
    "missing arrays": drop("arrays"),
    "own encoder": put(["encoder"], "own_networks"),
    "other folder": put({"file": "../model/arrays-0.safetensors", "sha256": "0" * 64}, "arrays"),
    "deep": lambda _: "[" * 100_000,
    "deep object": lambda _: '{"a":' * 5_000 + "1" + "}" * 5_000,
    "too large a number": lambda d: sealed(d).replace('"scale_": 1.0', '"scale_": 1e400'),
    "nan": lambda d: sealed(d).replace('"scale_": 1.0', '"scale_": NaN'),
    "name twice": lambda d: sealed(d).replace('"scale_": 1.0', '"scale_": 1.0, "scale_": 2.0'),
    "many digits": lambda d: sealed(d).replace('"seed_": ', '"seed_": ' + "1" * 10_000),
    "no object": lambda _: "[]",
    "null": lambda _: "null",
    "newer": put(999, "format"),
}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_contents_are_refused(payload, folder):
    rewrite(folder, PAYLOADS[payload])
    assert_refused(folder)


def test_there_are_a_hundred_of_them():
    assert len(PAYLOADS) >= 100


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {name: np.asarray(array * np.float32("nan"), np.float32) for name, array in arrays.items()},
        lambda arrays: {name: array.astype(np.float64) for name, array in arrays.items()},
        lambda arrays: {name: array[..., None] for name, array in arrays.items()},
        lambda arrays: dict(list(arrays.items())[1:]),
        lambda arrays: {},
    ],
    ids=["nan", "type", "shape", "one missing", "none"],
)
def test_arrays_that_do_not_fit_are_refused(change, folder):
    rewrite(folder, lambda document: document, change)
    assert_refused(folder)


def test_loading_opens_and_runs_nothing_else(folder, tmp_path):
    """A process whose audit hook forbids it: execution of text, new modules, sockets, other files, other programs."""
    program = f"""
import sys, os
import numpy as np
from aevb import load, ModelFileError
for path in ({str(FILES / "model-format-1")!r}, {str(folder)!r}):  # all is imported after these
    load(path)
seen, folder = [], {str(folder)!r}
def hook(event, args):
    if event in ("exec", "import", "compile", "socket.connect", "subprocess.Popen", "os.system", "ctypes.dlopen"):
        seen.append((event, str(args)[:200]))
    if event == "open" and isinstance(args[0], str) and not os.path.abspath(args[0]).startswith(folder):
        seen.append((event, args[0]))
sys.addaudithook(hook)
for text in sys.stdin.read().split("\\0"):
    open(os.path.join(folder, "model.json"), "w").write(text)
    try:
        load(folder)
        seen.append(("loaded", text[:100]))
    except ModelFileError:
        pass
sys.exit(repr(seen[:3]) if seen else 0)
"""
    document = unsealed((folder / "model.json").read_text())
    texts = []
    for change in PAYLOADS.values():
        changed = change(json.loads(json.dumps(document)))
        texts.append(sealed(changed) if isinstance(changed, dict) else changed)
    run = subprocess.run(
        [sys.executable, "-c", program], input="\0".join(texts), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.slow
def test_structured_mutations_are_refused_or_harmless(folder, tmp_path):
    """5,000 sealed documents in which one entry was exchanged: none gives another error, none takes long."""
    chance = random.Random(0)
    document = unsealed((folder / "model.json").read_text())
    values = [*BAD_VALUES, None, 0, 10**30, "", [], {}, [None], "gaussian", "adam", 0.5, [3, 3], "a" * 10_000]
    places = []

    def walk(node, path):
        for name, child in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((*path, name))
            if isinstance(child, dict | list):
                walk(child, (*path, name))

    walk(document, ())
    refused = 0
    for _ in range(5_000):
        changed = json.loads(json.dumps(document))
        put(chance.choice(values), *chance.choice(places))(changed)
        (folder / "model.json").write_text(sealed(changed))
        start = time.process_time()
        try:
            load(folder).transform(X[:1])
        except ModelFileError:
            refused += 1
        assert time.process_time() - start < 2
    assert refused > 2_500


@pytest.mark.slow
def test_a_file_that_claims_to_be_huge_takes_no_memory(folder):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for payload in ("huge layer", "huge latent", "huge width"):
        rewrite(folder, PAYLOADS[payload])
        assert_refused(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


# ---- saves that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_the_model_before_is_intact_whichever_operation_fails(code, fitted, tmp_path, monkeypatch):
    """The n-th operation on files fails, for every n: it is raised, and the old model is there or the new one."""
    old, new = fitted
    for number in itertools.count():
        folder = old.save(tmp_path / f"model-{number}")
        calls = itertools.count()

        def failing(function, calls=calls, number=number):
            def run(*arguments, **keywords):
                if next(calls) == number:
                    raise OSError(code, os.strerror(code))
                return function(*arguments, **keywords)

            return run

        with monkeypatch.context() as patch:
            for name in ("open", "fsync", "replace", "unlink"):
                patch.setattr(os, name, failing(getattr(os, name)))
            patch.setattr(Path, "write_bytes", failing(Path.write_bytes))
            patch.setattr(Path, "write_text", failing(Path.write_text))
            try:
                new.save(folder)
                has_failed = False
            except OSError:
                has_failed = True
        assert same(load(folder), old) or same(load(folder), new)
        if next(calls) <= number:
            break  # there was no such operation any more
        assert has_failed or same(load(folder), new)  # of what only clears up, failure is no loss
    assert number > 5


@pytest.mark.slow
def test_two_hundred_kills_leave_the_old_or_the_new_model(fitted, tmp_path):
    """A process saves two models in turn, without end, and is killed at a random moment."""
    for number, vae in enumerate(fitted):
        vae.save(tmp_path / str(number))
    program = (
        "import itertools, sys\nfrom aevb import load\n"
        "models = [load(path) for path in sys.argv[1:3]]\nprint('ready', flush=True)\n"
        "for number in itertools.count():\n    models[number % 2].save(sys.argv[3])"
    )
    chance = random.Random(0)
    for _ in range(20):
        arguments = [sys.executable, "-c", program, str(tmp_path / "0"), str(tmp_path / "1"), str(tmp_path / "model")]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.05)
            for _ in range(10):
                time.sleep(chance.random() * 0.05)
                process.send_signal(19)  # stop: what is on the disk now is what a kill would leave
                found = load(tmp_path / "model")
                assert same(found, fitted[0]) or same(found, fitted[1])
                process.send_signal(18)
            process.kill()
        found = load(tmp_path / "model")
        assert same(found, fitted[0]) or same(found, fitted[1])


def test_a_text_that_is_not_as_written_is_refused():
    text = sealed({"a": [1, 2.5, "b"]})
    assert unsealed(text) == {"a": [1, 2.5, "b"]}
    for changed in (text.replace(" ", "  ", 1), text.replace("2.5", "2.50"), text.replace('"b"', '"c"'), text + "\n"):
        with pytest.raises(ValueError, match="changed by hand"):
            unsealed(changed)
    with pytest.raises(ValueError, match="appears twice"):
        parse_json('{"a": {"b": 1, "b": 2}}')
