import pytest

from course_utils.experiments.first_steps import first_steps


def test_attention_drowns_the_residual_within_a_few_steps_unless_the_rate_climbs():
    cold, warm = (first_steps(warmup=warmup, seed=0, steps=10) for warmup in (0, 80))
    assert [len(values) for values in (*cold.values(), *warm.values())] == [11] * 4
    assert cold["share"][0] == warm["share"][0] < 1  # the same untrained model
    assert cold["share"][-1] > 1.3
    assert warm["share"][-1] < 1
    assert cold["similarity"][-1] > 0.995
    assert cold["similarity"][0] == pytest.approx(warm["similarity"][1], abs=1e-6)  # the first warm step has rate 0
