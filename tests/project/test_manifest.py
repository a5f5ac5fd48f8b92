"""The manifest for Kubernetes: its parts refer to each other by name, and its command is one of ours."""

import inspect
from itertools import pairwise
from pathlib import Path

import pytest

from aevb.cli.fit import fit
from aevb.cli.together import Launch

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.yaml"


def test_the_parts_of_the_manifest_fit_together():
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all(PAGE.read_text())
    name, spec = job["metadata"]["name"], job["spec"]
    pod = spec["template"]["spec"]
    assert (service["kind"], job["kind"], service["spec"]["clusterIP"]) == ("Service", "Job", "None")
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert spec["completions"] == spec["parallelism"]
    assert (spec["completionMode"], pod["restartPolicy"], spec["backoffLimit"]) == ("Indexed", "Never", 0)
    (container,) = pod["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    words = container["args"][0].split()
    options = dict(pairwise(words))
    assert words[:2] == ["aevb", "fit"]
    assert options["--coordinator"].partition(":")[0] == f"{name}-0.{pod['subdomain']}"
    assert options["--num-processes"] == str(spec["completions"])
    assert options["--process-id"] == "$JOB_COMPLETION_INDEX"
    known = {*inspect.signature(fit).parameters, *inspect.signature(Launch).parameters}
    assert all(word[2:].replace("-", "_") in known for word in words if word.startswith("--"))
