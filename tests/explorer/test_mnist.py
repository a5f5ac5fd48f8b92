"""The page of the paper's network, 500 hidden units on MNIST: its size, its speed, and what half precision changes.

Times are for a machine that is otherwise idle.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest

from aevb import VAE
from aevb.data.run_data import DataSettings, prepare
from aevb.explorer import write_page
from aevb.models import join, split

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run_data():
    return prepare(DataSettings("mnist-5k"))


@pytest.fixture(scope="module")
def vae(run_data):
    return VAE(latent_dim=2, hidden=(500,), max_epochs=10, progress=False).fit(run_data.train)


@pytest.fixture(scope="module")
def page(vae, run_data, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("mnist") / "explorer.html", vae, run_data)


def test_the_file_is_small(page):
    assert page.stat().st_size < 4e6


def test_half_precision_changes_little(vae, run_data):
    """Bounds of 500 rows, with the same noise: by less than 1 in 1,000 for each row, 1 in 10,000 on average."""
    single = vae.score_samples(run_data.test, num_samples=10)
    model = vae.model_
    parameters, constants, skeleton = split((model.generative, model.recognition))
    rounded = jax.tree.map(
        lambda leaf: leaf.astype(np.float16).astype(np.float32) if leaf.ndim == 2 else leaf, parameters
    )
    generative, recognition = join(rounded, constants, skeleton)
    vae.model_ = replace(model, generative=generative, recognition=recognition)
    try:
        half = vae.score_samples(run_data.test, num_samples=10)
    finally:
        vae.model_ = model
    change = np.abs(half / single - 1)
    print(f"half precision changes bounds by {change.mean():.1e} on average, {change.max():.1e} at the most")
    assert change.max() < 1e-3
    assert change.mean() < 1e-4


def test_bounds_agree_with_jax(visit, page, vae, run_data):
    opened = visit(page)
    X = run_data.test[:100] * np.float32(vae.scale_)
    found = opened.page.evaluate(
        """(rows) => { const { app, lowerBound } = explorer; const zero = new Float32Array(2);
          return rows.map((x) => lowerBound(app.model, Float32Array.from(x), zero))
            .map(({ bound, kl, q }) => [bound, kl, ...q.mu, ...q.sigma]); }""",
        X.tolist(),
    )
    q = vae.posterior(run_data.test[:100])
    from aevb.estimators import analytic_kl, sgvb_b

    models = vae.generative_, vae.recognition_
    bounds = jax.vmap(lambda x: sgvb_b(*models, x, np.zeros((1, 2), np.float32)))(X)
    kl = analytic_kl(q, vae.generative_.latent_distribution())
    found = np.array(found)
    np.testing.assert_allclose(found[:, 0], bounds, rtol=1e-3)
    np.testing.assert_allclose(found[:, 1], kl, rtol=1e-3)
    np.testing.assert_allclose(found[:, 2:4], q.mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[:, 4:], q.variance**0.5, rtol=2e-3)
