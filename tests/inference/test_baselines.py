"""The baselines that a deep model is compared with, against closed forms."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from aevb import VAE
from aevb.inference.baselines import fit_baselines, is_comparable

X = load_iris().data
TRAIN, TEST = X[::2], X[1::2]


@pytest.fixture(scope="module")
def found():
    return fit_baselines(TRAIN, TEST, num_factors=2)


def test_independent_columns_are_products_of_gaussians(found):
    expected = norm(TRAIN.mean(0), TRAIN.std(0)).logpdf(TEST).sum(axis=1)
    np.testing.assert_allclose(found.values["independent columns"], expected)


def test_pca_is_a_gaussian_in_the_units_of_the_data(found):
    count = int(found.details["PCA"].split()[0])
    mean, std = TRAIN.mean(0), TRAIN.std(0)
    pca = PCA(count).fit((TRAIN - mean) / std)
    covariance = pca.get_covariance() * np.outer(std, std)
    np.testing.assert_allclose(found.values["PCA"], multivariate_normal(mean, covariance).logpdf(TEST))


def test_units_change_densities_only_by_their_volume(found):
    scaled = fit_baselines(TRAIN * 1000 + 5, TEST * 1000 + 5, num_factors=2)
    for name, mean in found.means.items():
        assert scaled.means[name] == pytest.approx(mean - 4 * np.log(1000), abs=1e-3), name


def test_factors_explain_more_than_independent_columns(found):
    assert found.means["factor analysis, 2 factors"] > found.means["independent columns"] + 1
    assert list(found.means)[-1] == "Gaussian mixture"


def test_the_same_factor_analysis_is_listed_once(found):
    best = int(fit_baselines(TRAIN, TEST).details["factor analysis"].split()[0])
    for count in (1, 2):
        listed = fit_baselines(TRAIN, TEST, num_factors=count).details
        assert ("factor analysis" in listed) == (count != best)
        own = listed[f"factor analysis, {count} factor{'s' * (count != 1)}"]
        assert own.startswith("as many as this model")
        assert ("cross-validation" in own) == (count == best)


def test_a_table_with_a_constant_column_or_nan_is_not_comparable():
    assert is_comparable(X)
    assert not is_comparable(np.column_stack([X, np.ones(len(X))]))
    assert not is_comparable(np.where(X[0, 0] == X, np.nan, X))


@pytest.mark.thorough
def test_vae_compare_lists_its_own_log_likelihood_first(recwarn):
    train, test = (pd.DataFrame(rows, columns=list("abcd")) for rows in (TRAIN, TEST))
    vae = VAE(1, hidden=(3,), max_epochs=2, progress=False, optimizer="sgd").fit(train)
    comparison = vae.compare(train, test, method="quadrature")
    assert not [str(found.message) for found in recwarn if "feature names" in str(found.message)]
    np.testing.assert_allclose(
        comparison.values["this model"], vae.log_likelihood(test, method="quadrature").values, rtol=1e-6
    )
    assert next(iter(comparison.means)) == "this model"
    assert "factor analysis, 1 factor" in str(comparison)


def test_vae_compare_needs_a_density():
    vae = VAE(1, hidden=(3,), max_epochs=2, progress=False, optimizer="sgd").fit((TRAIN > 3) * 1.0)
    with pytest.raises(ValueError, match="compare: needs a Gaussian likelihood"):
        vae.compare(TRAIN > 3, TEST > 3)
