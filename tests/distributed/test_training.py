"""The same model from one process, from several, and from several devices, up to the order of sums."""

import numpy as np
import pytest

MODELS = "dense,decisions,table,sequence"
DOUBLE = {"JAX_ENABLE_X64": 1}


@pytest.mark.thorough
def test_two_processes_learn_what_one_does(learned, learned_together, check_equal):
    models = "dense,table,sequence"
    one, two = learned(models), learned_together(models, 2)
    for name in one:
        np.testing.assert_array_equal(two[0][name], two[1][name])
    check_equal(two[0], one, 1e-5)


@pytest.mark.slow
def test_four_processes_learn_what_one_does_in_double_precision(learned, learned_together, check_equal):
    one = learned(MODELS, **DOUBLE)
    for process in learned_together(MODELS, 4, **DOUBLE):
        check_equal(process, one, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 4])
def test_several_devices_learn_what_one_does(learned, devices, check_equal):
    models = f"{MODELS},windows,variants,images"
    check_equal(learned(models, DEVICES=devices, **DOUBLE), learned(models, **DOUBLE), 1e-12)


@pytest.mark.slow
def test_a_run_is_resumed_by_fewer_processes(tmp_path, learned, learned_together, check_equal):
    saved = {"CHECKPOINT": tmp_path / "checkpoints", **DOUBLE}
    whole = learned("dense", EPOCHS=4, **DOUBLE)
    learned_together("dense", 4, EPOCHS=1, **saved)
    learned_together("dense", 2, EPOCHS=3, **saved)
    check_equal(learned("dense", EPOCHS=4, **saved), whole, 1e-12)


@pytest.mark.slow
def test_labels_are_learned_in_several_processes(learned, learned_together, check_equal):
    one = learned("labels", **DOUBLE)
    for process in learned_together("labels", 2, **DOUBLE):
        check_equal(process, one, 1e-12)


@pytest.mark.thorough
def test_a_model_divided_among_devices_is_the_same_and_each_has_a_part(learned, check_equal):
    one, four = (learned("large", BYTES=1, **DOUBLE, **given) for given in ({}, {"DEVICES": 4, "SHARD": 1}))
    whole, part = one.pop("bytes"), four.pop("bytes")
    assert part < 0.3 * whole  # all but the small arrays
    check_equal(four, one, 1e-12)


@pytest.mark.slow
def test_a_divided_model_is_resumed_by_one_process(tmp_path, learned, learned_together, check_equal):
    saved = {"CHECKPOINT": tmp_path / "checkpoints", **DOUBLE}
    whole = learned("large", EPOCHS=3, **DOUBLE)
    first, second = learned_together("large", 2, EPOCHS=2, SHARD=1, **saved)
    check_equal(first, second, 0)
    check_equal(learned("large", EPOCHS=3, **saved), whole, 1e-12)
