import jax.numpy as jnp
import pytest


@pytest.mark.float64
def test_marker_gives_float64():
    assert jnp.zeros(()).dtype == jnp.float64


def test_default_is_float32():
    assert jnp.zeros(()).dtype == jnp.float32
