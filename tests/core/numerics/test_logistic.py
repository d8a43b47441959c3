"""The logistic function against SciPy's."""

import numpy as np
from scipy.special import expit

from core.numerics.logistic import logistic


def test_it_is_that_of_scipy_at_any_power() -> None:
    powers = np.array([-np.inf, -1e300, -800.0, -30.0, -1.0, 0.0, 1e-9, 1.0, 40.0, 699.0])
    np.testing.assert_allclose(logistic(powers.copy()), expit(-powers), rtol=1e-15)


def test_powers_beyond_the_range_of_numbers_are_next_to_nothing() -> None:
    assert (logistic(np.array([701.0, 1e300, np.inf])) < 1e-300).all()
