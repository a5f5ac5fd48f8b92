"""The page of a model with a learned mixture as p(z)."""

import numpy as np
import pytest

from aevb import VAE
from aevb.explorer import write_page


@pytest.mark.thorough
def test_the_page_computes_the_density_and_draws_of_the_mixture(visit, run_data_of, tmp_path):
    """Means of 2,000 draws within five standard errors: a false alarm once in 10^6 runs."""
    rng = np.random.default_rng(0)
    rows = np.array([[-3.0, 0.0, 1.0], [3.0, 1.0, -1.0]])[rng.integers(2, size=80)] + 0.3 * rng.normal(size=(80, 3))
    vae = VAE(2, prior="mixture", hidden=(16,), max_epochs=2, progress=False).fit(rows.astype(np.float32))
    seen = visit(write_page(tmp_path / "page.html", vae, run_data_of(rows.astype(np.float32))))
    p = vae.generative_.latent_distribution()
    z = np.array([[-2.0, 0.5], [0.0, 0.0], [1.5, -1.0]], np.float32)
    found = seen.value(f"{z.tolist()}.map((z) => explorer.app.model.levels.logDensity(Float32Array.from(z)))")
    np.testing.assert_allclose(found, p.log_prob(z), rtol=1e-3)
    draws = seen.value("Array.from(explorer.app.model.levels.draws(new explorer.Random(1), 2000))")
    draws = np.reshape(draws, (-1, 2))
    assert (abs(draws.mean(0) - p.mean) < 5 * np.sqrt(p.variance / 2000)).all()
    x = np.array([[-3.0, 0.0, 1.0]], np.float32)
    bound = "explorer.lowerBound(app.model, Float32Array.from([-3, 0, 1]), new explorer.Random(1).normals(20000)).bound"
    assert abs(seen.value(bound) - vae.score(x, num_samples=20_000)) < 0.1  # several standard errors
