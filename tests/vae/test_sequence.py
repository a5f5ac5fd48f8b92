"""`SequenceVAE`: what a user sees. Exact answers are in tests/exact/test_sequences.py."""

import jax
import numpy as np
import optax
import pytest

from aevb import SequenceVAE, load
from aevb.models import split
from aevb.vae.structure import check_structure

SMALL = {"latent_dim": 2, "transition": "linear", "hidden": (), "recurrent_size": 4, "optimizer": "sgd"}
SMALL |= {"learning_rate": 1e-4, "max_epochs": 2, "validation_fraction": 0, "progress": False}
RNG = np.random.default_rng(0)
WALKS = [RNG.normal(size=(length, 2)).cumsum(axis=0) for length in RNG.integers(3, 8, 24)]


@pytest.fixture(scope="module")
def model():
    return SequenceVAE(**SMALL).fit(WALKS)


def test_a_model_of_sequences_is_fitted_scored_and_saved(model, tmp_path):
    lengths = [len(walk) for walk in WALKS]

    assert model.score(WALKS) == pytest.approx(model.score_samples(WALKS).sum() / sum(lengths))
    again = load(model.save(tmp_path / "model"))
    assert again.score(np.concatenate(WALKS), lengths) == model.score(WALKS)


@pytest.mark.thorough
def test_values_do_not_depend_on_the_other_sequences_or_the_form(model):
    whole, lengths = model.score_samples(WALKS), [len(walk) for walk in WALKS]

    np.testing.assert_allclose(model.score_samples(WALKS[5:7]), whole[5:7], rtol=1e-5)
    np.testing.assert_allclose(model.score_samples(np.concatenate(WALKS), lengths), whole, rtol=1e-6)
    states = model.transform(WALKS)
    assert [state.shape for state in states] == [(length, 2) for length in lengths]
    np.testing.assert_array_equal(model.transform(np.concatenate(WALKS), lengths), np.concatenate(states))


@pytest.mark.thorough
def test_estimates_of_the_likelihood_exceed_the_bound(model):
    """The particle filter's within 8 standard errors, which have 9 degrees of freedom: false alarms below 1e-3."""
    one, other = (
        model.log_likelihood(WALKS, method="particle-filter", num_samples=5000, random_state=seed) for seed in (1, 2)
    )
    with pytest.warns(UserWarning, match='k-hat above 0.7.*method="particle-filter"'):  # q is hardly trained
        weighted = model.log_likelihood(WALKS, num_samples=100)

    assert (abs(one.values - other.values) < 8 * np.hypot(one.std_errors, other.std_errors)).all()
    assert model.score_samples(WALKS).mean() < weighted.values.mean() < one.values.mean()


@pytest.mark.thorough
def test_filtered_states_and_draws_have_the_lengths_asked_for(model):
    assert [part.shape for part in model.filter(WALKS[:3], num_particles=50)] == [(len(w), 2) for w in WALKS[:3]]
    drawn = model.sample(3, length=[4, 2, 9], random_state=1)
    assert [part.shape for part in drawn] == [(4, 2), (2, 2), (9, 2)]
    np.testing.assert_array_equal(drawn[0], model.sample(3, length=[4, 2, 9], random_state=1)[0])
    assert not np.array_equal(model.sample(2, 4)[0], model.sample(2, 4)[1])


@pytest.mark.thorough
def test_a_run_resumes_bit_for_bit(tmp_path):
    setting = SMALL | {"max_epochs": 4, "kl_annealing": 10, "dropout": 0.2, "validation_fraction": 0.5}
    whole = SequenceVAE(**setting).fit(WALKS)
    SequenceVAE(**setting | {"max_epochs": 2}).fit(WALKS, checkpoint=tmp_path, checkpoint_seconds=0)
    resumed = SequenceVAE(**setting).fit(WALKS, checkpoint=tmp_path)

    assert resumed.score(WALKS) == whole.score(WALKS)
    assert len(resumed.history_) == 4
    assert "validation_lower_bound" in resumed.history_[0]


@pytest.mark.thorough
@pytest.mark.parametrize("window", [None, 4])
def test_units_are_left_out_in_training_only(window):
    setting = SMALL | {"hidden": (3,), "learning_rate": 1e-30, "window": window}  # parameters stay where they start
    whole, thin = (SequenceVAE(**setting, dropout=rate).fit(WALKS) for rate in (0.0, 0.5))

    assert whole.history_[-1]["lower_bound"] != thin.history_[-1]["lower_bound"]
    assert whole.score(WALKS) == thin.score(WALKS)


@pytest.mark.thorough
def test_training_continues_with_more_sequences(model, tmp_path):
    copy = load(model.save(tmp_path / "model"))
    before = copy.score(WALKS)
    copy.partial_fit(WALKS[:10])

    assert copy.score(WALKS) != before
    assert len(copy.history_) == len(model.history_) + 1
    with pytest.raises(ValueError, match="call fit with the first"):
        SequenceVAE(**SMALL).partial_fit(WALKS)


@pytest.mark.thorough
def test_an_optimizer_that_was_set_since_starts_anew(model, tmp_path):
    copy = load(model.save(tmp_path / "model")).set_params(optimizer=optax.adam(optax.constant_schedule(1e-3)))

    def steps_after_a_batch():
        state = copy.partial_fit(WALKS[:10])._optimizer_state
        return max(int(count) for _, count in optax.tree_utils.tree_get_all_with_path(state, "count"))

    first = steps_after_a_batch()
    assert steps_after_a_batch() == 2 * first > 0

    copy.set_params(optimizer=optax.adam(optax.constant_schedule(1e-4)))
    assert steps_after_a_batch() == first
    copy.set_params(num_samples=2, learning_rate=0.5)
    assert steps_after_a_batch() == 2 * first


@pytest.mark.thorough
def test_a_model_of_sequences_keeps_what_it_consists_of(model, tmp_path):
    copy = load(model.save(tmp_path / "model")).set_params(autoregressive=True)
    with pytest.raises(ValueError, match=r"partial_fit: autoregressive=True, but .*=False.* or call fit"):
        copy.partial_fit(WALKS[:10])
    assert load(copy.save(tmp_path / "model")).score(WALKS) == model.score(WALKS)
    copy.set_params(autoregressive=False, recurrent_size=None, latent_dim=None)  # those that it has
    copy._check_parameters()
    check_structure(copy._arguments(), copy.model_.arguments)


@pytest.mark.thorough
def test_learning_that_goes_on_moves_both_models_after_a_linear_start(monkeypatch):
    monkeypatch.setattr("aevb.vae.sequence_fitting.is_likelier", lambda *_: False)
    started = SequenceVAE(**SMALL | {"learning_rate": 1e-7}, linear_start=True).fit(WALKS)
    before = jax.tree.leaves(split(started.generative_).parameters)
    started.set_params(optimizer=optax.sgd(1.0)).partial_fit(WALKS)

    after = jax.tree.leaves(split(started.generative_).parameters)
    assert any((left != right).any() for left, right in zip(before, after, strict=True))


@pytest.mark.thorough
def test_controls_covariates_and_times_are_needed_again(tmp_path):
    given = {
        "controls": [np.arange(len(walk)) / 10 for walk in WALKS],
        "covariates": np.where(np.arange(24) % 2, "a", "b"),
        "times": [np.arange(len(walk)) ** 1.5 for walk in WALKS],
    }
    fitted = SequenceVAE(**SMALL).fit(WALKS, **given)

    assert np.isfinite(fitted.score(WALKS, **given))
    assert load(fitted.save(tmp_path / "model")).score(WALKS, **given) == fitted.score(WALKS, **given)
    for name in given:
        with pytest.raises(ValueError, match=f"{name}: the model .* [Gg]ive them"):
            fitted.score(WALKS, **{other: value for other, value in given.items() if other != name})


@pytest.mark.thorough
def test_lengths_of_one_and_sequences_without_observations():
    data = [*WALKS[:20], WALKS[0][:1], np.full((4, 2), np.nan)]
    with pytest.warns(UserWarning, match="nothing is observed in 1 of 22, the first of them sequence 21"):
        fitted = SequenceVAE(**SMALL).fit(data)

    assert np.isfinite(fitted.score_samples(data)).all()
    assert fitted.score_samples(data)[21] <= 0  # minus the KL divergence
    assert [state.shape for state in fitted.transform(data[-2:])] == [(1, 2), (4, 2)]
    one = SequenceVAE(**SMALL).fit(WALKS[0])  # an array (steps, D) is one sequence
    assert np.isfinite(one.score(WALKS[0]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"transition": "gate"}, "transition='gate' is not known. Did you mean 'gated'"),
        ({"recognition": "backward"}, "recognition='backward' is not known"),
        ({"network": "mlp"}, "network='mlp' is not known"),
        ({"autoregressive": "both"}, "autoregressive='both' must be True, False or 'states'."),
        ({"latent_dim": 0}, "latent_dim=0"),
        ({"kl_annealing": 5, "estimator": "importance"}, "kl_annealing: the importance-weighted bound has no KL term"),
    ],
)
def test_bad_settings_are_refused(setting, words):
    with pytest.raises(ValueError, match=words):
        SequenceVAE(**SMALL | setting).fit(WALKS)


@pytest.mark.thorough
def test_sequences_without_transitions_are_refused():
    with pytest.raises(ValueError, match=r"one step each, .* Give longer sequences, or use VAE"):
        SequenceVAE(**SMALL).fit([walk[:1] for walk in WALKS])


@pytest.mark.thorough
def test_another_number_of_columns_is_refused(model):
    with pytest.raises(ValueError, match="x2"):
        model.score([np.zeros((4, 3))])


@pytest.mark.thorough
def test_forecasts_and_imputations_have_their_shapes_and_keep_what_is_observed(model):
    holes = [walk.copy() for walk in WALKS[:3]]
    holes[0][1] = np.nan
    holes[1][0, 1] = np.nan

    forecast = model.forecast(holes, steps=4, num_draws=30)
    filled, draws = model.impute(holes, num_draws=5)

    assert forecast.draws.shape == (3, 30, 4, 2)
    assert forecast.interval(0.9).shape == (3, 4, 2, 2)
    assert (np.diff(forecast.interval(0.9)) > 0).all()
    for walk, whole, drawn in zip(holes, filled, draws, strict=True):
        np.testing.assert_array_equal(whole[~np.isnan(walk)], walk[~np.isnan(walk)])
        assert np.isfinite(whole).all()
        assert drawn.shape == (5, *walk.shape)
    assert [part.shape for part in model.surprise(holes, num_particles=50)] == [(len(walk),) for walk in holes]
    assert model.surprise(holes, num_particles=50)[0][1] == pytest.approx(0, abs=1e-6)  # nothing is observed
    assert [part.shape for part in model.reconstruct(holes)] == [walk.shape for walk in holes]


@pytest.mark.thorough
def test_frames_of_mixed_columns_come_back_as_frames():
    pd = pytest.importorskip("pandas")
    labels = np.repeat(np.arange(24), [len(walk) for walk in WALKS])
    times = np.concatenate([np.arange(len(walk)) for walk in WALKS])
    frame = pd.DataFrame(np.concatenate(WALKS), columns=["a", "b"])
    frame["mood"] = np.where(frame["a"] > 0, "good", "bad")
    frame = frame.set_index(pd.MultiIndex.from_arrays([labels, times], names=["id", "t"]))
    frame.iloc[3, 2] = None
    frame.iloc[4, 0] = np.nan
    model = SequenceVAE(**SMALL).fit(frame)

    filled = model.impute(frame)

    assert list(filled.columns) == ["a", "b", "mood"]
    assert not filled.isna().any().any()
    kept = frame.notna().to_numpy()
    assert (filled.to_numpy()[kept] == frame.to_numpy()[kept]).all()
    assert model.transform(frame).shape == (len(frame), 2)
    assert model.forecast(frame, steps=2, num_draws=3).draws.shape == (24, 3, 2, 3)


@pytest.mark.thorough
def test_binary_sequences_with_their_own_validation_data():
    notes = [np.round(np.abs(np.sin(walk))) for walk in WALKS]
    model = SequenceVAE(**SMALL | {"likelihood": "bernoulli", "network": "tcn", "recognition": "forward"})
    model.fit(
        notes[:16], validation_data={"sequences": np.concatenate(notes[16:]), "lengths": [len(n) for n in notes[16:]]}
    )

    assert "validation_lower_bound" in model.history_[-1]
    assert set(np.unique(np.concatenate(model.sample(5, length=6)))) <= {0.0, 1.0}
    assert model.score(notes) < 0
    assert all(((part >= 0) & (part <= 1)).all() for part in model.reconstruct(notes))
    with pytest.raises(ValueError, match="sequence 0 has 0 steps"):
        model.fit(notes, validation_data=[np.zeros((0, 2))])


@pytest.mark.slow
@pytest.mark.parametrize("autoregressive", [True, "states"])
def test_steps_that_depend_on_the_step_before(autoregressive, tmp_path):
    holes = [walk.copy() for walk in WALKS]
    holes[0][1], holes[1][0, 1] = np.nan, np.nan
    model = SequenceVAE(**SMALL | {"recognition": "forward"}, autoregressive=autoregressive).fit(holes)

    again = load(model.save(tmp_path / "model"))
    assert again.score(holes) == model.score(holes)
    assert again.autoregressive == autoregressive
    assert model.forecast(holes[:2], 3, 10).draws.shape == (2, 10, 3, 2)
    assert [part.shape for part in model.sample(2, [3, 4])] == [(3, 2), (4, 2)]
    filled = model.impute(holes[:2])[0]
    np.testing.assert_array_equal(filled[np.isfinite(holes[0])], holes[0][np.isfinite(holes[0])])
    assert np.isfinite(filled).all()
    assert [part.shape for part in model.surprise(holes[:2], num_particles=20)] == [(len(h),) for h in holes[:2]]


@pytest.mark.slow
def test_long_sequences_are_learned_in_windows_that_carry_the_state(tmp_path):
    setting = SMALL | {"recognition": "mean-field", "window": 3, "batch_size": 4, "autoregressive": "states"}
    whole = SequenceVAE(**setting | {"max_epochs": 4}).fit(WALKS)
    SequenceVAE(**setting).fit(WALKS, checkpoint=tmp_path, checkpoint_seconds=0)
    resumed = SequenceVAE(**setting | {"max_epochs": 4}).fit(WALKS, checkpoint=tmp_path)

    assert resumed.score(WALKS) == whole.score(WALKS)
    assert whole.history_[-1]["samples"] >= 4 * sum(-(-len(walk) // 3) for walk in WALKS) * 0.9
    whole.partial_fit(WALKS[:5])
    assert np.isfinite(whole.score(WALKS))


@pytest.mark.slow
def test_one_short_series_starts_with_the_linear_model_that_fits_best(tmp_path):
    walk = np.random.default_rng(1).normal(size=(60, 1)).cumsum(axis=0)
    model = SequenceVAE(max_epochs=1, learning_rate=1e-6, progress=False).fit([walk])

    assert model.model_.latent_dim == 2
    assert model.model_.arguments.transition == "linear"
    step = np.diff(walk[:, 0]).std()
    found = model.log_likelihood([walk], method="particle-filter", num_samples=10_000).values[0] / 60
    assert found == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * step**2), abs=0.25)  # that of the walk's steps
    again = load(model.save(tmp_path / "model"))
    assert again.score([walk]) == model.score([walk])
    assert np.isfinite(again.partial_fit([walk]).score([walk]))


@pytest.mark.slow
def test_a_linear_start_that_is_kept_gets_a_posterior_of_its_own():
    """The series is linear, so that learning cannot improve on its start; log p(x) is -0.82 per step."""
    rng = np.random.default_rng(0)
    state, series = 0.0, np.empty((300, 1))
    for t in range(300):
        state = 0.9 * state + 0.4 * rng.normal() if t else 0.0
        series[t] = state
    series += 0.3 * rng.normal(size=(300, 1))
    series[100:110] = np.nan
    model = SequenceVAE(random_state=0, progress=False).fit([series])

    exact = model.log_likelihood([series], method="particle-filter").values[0] / 300
    assert exact - 0.15 < model.score([series]) < exact + 0.01
