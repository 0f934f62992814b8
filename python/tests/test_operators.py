"""The scalar operators of the core against the formulas, written out in numpy."""

import numpy as np
import pytest
from obprox import _core

rng = np.random.default_rng(0)
X = np.where(rng.random((4, 5)) < 0.3, 0.0, rng.normal(size=(4, 5)))
G = rng.normal(size=(4, 5))


def shrink(x, t):
    return np.sign(x) * np.maximum(np.abs(x) - t, 0)


def test_prox_step_is_a_shrunken_gradient_step():
    np.testing.assert_array_equal(_core.soft_threshold(X, 0.3), shrink(X, 0.3))
    np.testing.assert_allclose(_core.prox_step(X, G, 0.5, 0.2), shrink(X - 0.5 * G, 0.1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        _core.prox_step(X, G, 0.5, 0.2, l2=2.0), shrink(X - 0.5 * G, 0.1) / 2, rtol=0, atol=1e-15
    )


def test_orthant_step_keeps_the_face():
    trial = X - 0.5 * (G + 0.2 * np.sign(X))
    expected = np.where((X != 0) & (np.sign(trial) == np.sign(X)), trial, 0.0)
    np.testing.assert_allclose(_core.orthant_step(X, G, 0.5, 0.2), expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(_core.on_face(trial, X), expected)
    np.testing.assert_allclose(_core.orthant_step(X, G, 0.5, 0.0), X - 0.5 * G, rtol=0, atol=1e-15)


def test_rda_reads_the_weight_off_the_gradients():
    expected = -np.sqrt(9) / 0.1 * shrink(G / 9, 0.02)
    np.testing.assert_allclose(_core.rda_weight(G, 9, 0.1, 0.02), expected, rtol=1e-14)
    np.testing.assert_allclose(_core.dual_average(G / 9, 0.1 / 3, 0.02), expected, rtol=1e-14)
    np.testing.assert_array_equal(_core.rda_weight(np.zeros(3), 0, 0.1, 0.02), np.zeros(3))


def test_closed_forms_are_their_steps():
    x = X.copy()
    for _ in range(7):
        x = shrink(x - 0.1 * G, 0.02)
    np.testing.assert_allclose(_core.drift(X, G, 0.1, 0.2, 7), x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(_core.rest(X, 0.7, 0.2), shrink(X, 0.14), rtol=0, atol=1e-15)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="shapes"):
        _core.on_face(np.zeros(3), np.zeros(4))
