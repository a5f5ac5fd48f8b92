import warnings

import numpy as np
import pytest
from sklearn import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import scale

from aevb.models.cross_validation import NUM_FOLDS, best_candidate, fitting_small_models

ROWS = scale(load_wine().data)


@pytest.mark.parametrize("seed", [0, 1])
def test_scores_and_choice_are_those_of_scikit_learn(seed):
    candidates, scores = [PCA(count) for count in (1, 2, 4, 8, 12)], []

    def score(model, train, test):
        scores.append(clone(model).fit(train).score(test))
        return scores[-1]

    best = best_candidate(candidates, ROWS, score, seed)
    folds = KFold(NUM_FOLDS, shuffle=True, random_state=seed)
    expected = np.array([cross_val_score(model, ROWS, cv=folds) for model in candidates])
    np.testing.assert_array_equal(np.reshape(scores, expected.shape), expected)
    assert best is candidates[np.argmax(expected.mean(axis=1))]


def test_a_single_candidate_is_not_fitted():
    assert best_candidate(["only"], ROWS, None) == "only"


def test_warnings_are_ignored_inside_only():
    with fitting_small_models():
        warnings.warn("did not converge", stacklevel=1)
    with pytest.warns(UserWarning, match="converge"):
        warnings.warn("did not converge", stacklevel=1)
