"""Write inventories of other projects' documentation, for the names that ours refers to.

Sphinx links a name to another project's page by that project's inventory, which it would download at each build. These
are written here, so that a build needs no network and cannot fail because of it; a test imports every name.
"""

import zlib
from pathlib import Path

# For each project its address, and where its names are below it: `$` stands for the name.
PROJECTS = {
    "jax": (
        "https://docs.jax.dev/en/latest/",
        {
            "jax.ShapeDtypeStruct": "_autosummary/$.html#$",
            "jax.jaxlib._jax.Array": "_autosummary/jax.Array.html#jax.Array",  # what annotations become
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        {
            "numpy.bool": "reference/arrays.scalars.html#$",
            "numpy.dtype": "reference/generated/$.html#$",
            "numpy.ndarray": "reference/generated/$.html#$",
            "numpy.number": "reference/arrays.scalars.html#$",
        },
    ),
    "numpyro": (
        "https://num.pyro.ai/en/stable/",
        {
            "numpyro.distributions.continuous.Normal": "distributions.html#$",
            "numpyro.distributions.distribution.Distribution": "distributions.html#$",
            "numpyro.distributions.transforms.Transform": "distributions.html#$",
        },
    ),
    "optax": (
        "https://optax.readthedocs.io/en/latest/",
        {"optax._src.base.GradientTransformation": "api/transformations.html#optax.GradientTransformation"},
    ),
    "python": (
        "https://docs.python.org/3/",
        {
            **{
                f"collections.abc.{name}": "library/collections.abc.html#$"
                for name in ("Callable", "Collection", "Generator", "Iterator", "Mapping", "Sequence")
            },
            "pathlib.Path": "library/pathlib.html#$",
        },
    ),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        {
            f"sklearn.{name}": "modules/generated/$.html#$"
            for name in (
                "base.BaseEstimator",
                "base.ClassifierMixin",
                "base.RegressorMixin",
                "model_selection.GridSearchCV",
                "pipeline.Pipeline",
            )
        },
    ),
}


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the inventories to a folder; return Sphinx's `intersphinx_mapping`."""
    folder.mkdir(parents=True, exist_ok=True)
    for project, (_, places) in PROJECTS.items():
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        note = "# The remainder of this file is compressed using zlib.\n"
        lines = "".join(f"{name} py:class 1 {place.replace('$', name)} -\n" for name, place in sorted(places.items()))
        (folder / f"{project}.inv").write_bytes((head + note).encode() + zlib.compress(lines.encode()))
    return {project: (address, str(folder / f"{project}.inv")) for project, (address, _) in PROJECTS.items()}
