import numpy as np

from course_utils.experiments.gradient_at_start import gradient_at_start, over_depths
from course_utils.experiments.power_law import exponent


def test_the_gradient_near_the_output_falls_with_depth_in_pre_norm_only():
    depths = (1, 4, 16)
    norms = over_depths(range(4), depths)
    typical = {order: np.exp(np.log(of_order).mean(axis=1)) for order, of_order in norms.items()}
    assert [np.shape(of_order) for of_order in norms.values()] == [(3, 4), (3, 4)]
    assert -0.7 < exponent(depths, typical["pre-norm"]) < -0.15
    assert -0.1 < exponent(depths, typical["post-norm"]) < 0.4
    assert typical["post-norm"][-1] > 1.5 * typical["pre-norm"][-1]


def test_a_seed_gives_the_same_gradient_again():
    assert gradient_at_start(2, True, 3) == gradient_at_start(2, True, 3) != gradient_at_start(2, True, 4)
