"""Which arguments of a fitted model may change before it learns more."""

import numpy as np
import pytest

from aevb.settings import ESTIMATOR_SETTINGS, Arguments
from aevb.vae.structure import check_structure, saved_arguments

FITTED = Arguments(latent_dim=3, hidden=(50,), autoregressive=False, conditional_prior=True, model="m2")
OF_STEPS = {
    "learning_rate": 0.5,
    "optimizer": "sgd",
    "estimator": "sgvb-a",
    "num_samples": 7,
    "batch_size": 7,
    "kl_annealing": 7,
    "progress": False,
    "max_epochs": 7,
    "random_state": 7,
    "dropout": 0.5,
    "window": 7,
    "parameter_prior": None,
    "classifier_weight": 7,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("latent_dim", 4),
        ("hidden", (50, 50)),
        ("network", "resnet"),
        ("posterior", "flow"),
        ("learner", "wake-sleep"),
        ("autoregressive", "states"),
        ("conditional_prior", False),
        ("model", "m1"),
        ("encoder", len),
    ],
)
def test_what_a_model_consists_of_cannot_change(name, value):
    with pytest.raises(ValueError, match=rf"partial_fit: {name}=.*fitted with {name}=.*set_params\({name}=.*call fit"):
        check_structure(FITTED.replaced(**{name: value}), FITTED)
    assert vars(saved_arguments(FITTED.replaced(**{name: value}), FITTED)) == vars(FITTED)


def test_how_it_learns_may_change():
    known = {name for settings in ESTIMATOR_SETTINGS.values() for name in settings}
    assert set(OF_STEPS) <= known
    check_structure(FITTED.replaced(**OF_STEPS), FITTED)


@pytest.mark.parametrize(
    "same",
    [{"hidden": 50}, {"hidden": [50]}, {"hidden": np.array([50])}, {"latent_dim": np.int64(3)}, {"encoder": None}],
)
def test_values_that_mean_the_same_are_allowed(same):
    check_structure(FITTED.replaced(**same), FITTED)
    own = FITTED.replaced(encoder=len)
    check_structure(own.replaced(num_samples=2), own)


def test_an_argument_that_an_older_file_lacks_has_its_default():
    check_structure(Arguments(recognition="smoother"), Arguments())
    with pytest.raises(ValueError, match="recognition='forward', but the model was fitted with recognition='smoother'"):
        check_structure(Arguments(recognition="forward"), Arguments())
