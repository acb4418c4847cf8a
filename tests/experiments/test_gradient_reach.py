"""How far a gradient reaches: against the full Jacobian, closed forms and the receptive fields of convolutions."""

import math
import statistics

import pytest
import torch
from torch import nn

from course_utils.attention import MultiheadAttention
from course_utils.experiments.gradient_reach import (
    decay_rate,
    gradient_by_distance,
    gradient_reach,
    layers_to_connect,
)


def test_gradient_is_that_of_the_full_jacobian():
    torch.manual_seed(3)
    layer, x = MultiheadAttention(4, 4, 2).double(), torch.randn(5, 4, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0, -1], x)  # [4 outputs, 5 tokens, 4 inputs]
    expected = [jacobian[:, 4 - n].norm().item() for n in range(5)]
    assert gradient_by_distance(layer, x).tolist() == pytest.approx(expected)


def test_gradient_of_a_layer_that_scales_each_token_differently():
    factors = torch.tensor([1.0, 10.0, 100.0])
    norms = gradient_by_distance(lambda x: (x * factors[:, None]).cumsum(dim=1), torch.ones(3, 2))
    assert norms.tolist() == pytest.approx([100 * math.sqrt(2), 10 * math.sqrt(2), math.sqrt(2)])


@pytest.fixture(scope="module")
def norms() -> dict[str, list[list[float]]]:
    return gradient_reach(seeds=range(100, 106))


def rates(norms: dict[str, list[list[float]]], name: str) -> list[float]:
    return [decay_rate(of_seed, range(8, 65)) for of_seed in norms[name]]


def test_attention_does_not_decay_with_distance(norms):
    assert rates(norms, "attention") == pytest.approx([1] * 6, abs=0.012)
    far = statistics.fmean(statistics.fmean(of_seed[-64:]) for of_seed in norms["attention"])
    near = statistics.fmean(statistics.fmean(of_seed[1:65]) for of_seed in norms["attention"])
    assert far / near == pytest.approx(1, abs=0.15)


def test_lstm_decays_and_the_bias_of_the_forget_gate_slows_it(norms):
    assert rates(norms, "LSTM, forget bias 0") == pytest.approx([0.60] * 6, abs=0.05)
    assert rates(norms, "LSTM, forget bias 1") == pytest.approx([0.815] * 6, abs=0.04)
    assert rates(norms, "LSTM, forget bias 3") == pytest.approx([0.98] * 6, abs=0.03)


def test_attention_is_diluted_by_the_length():
    short, long = (gradient_reach(length, seeds=range(3))["attention"] for length in (32, 128))
    means = [statistics.fmean(statistics.fmean(of_seed[1:]) for of_seed in of_length) for of_length in (short, long)]
    assert means[0] / means[1] == pytest.approx(4, rel=0.25)


def test_the_forget_bias_is_where_pytorch_reads_it():
    """An LSTM whose forget gate is shut by its bias passes nothing on but through the hidden state."""
    norms = gradient_reach(length=8, width=4, forget_biases=(-50.0, 50.0), seeds=[0])
    (shut,), (open_,) = norms["LSTM, forget bias -50"], norms["LSTM, forget bias 50"]
    assert shut[7] < 1e-3 * open_[7]


def test_decay_rate_of_a_geometric_sequence():
    assert decay_rate([5 * 0.7**n for n in range(50)], range(3, 40)) == pytest.approx(0.7)


@pytest.mark.parametrize("distance", [1, 2, 3, 8, 9, 26, 27, 63])
@pytest.mark.parametrize("seed", [0, 1])
def test_layers_to_connect_two_tokens(distance, seed):
    assert layers_to_connect("attention", distance, seed=seed) == 1
    assert layers_to_connect("convolution", distance, kernel=3, seed=seed) == math.ceil(distance / 2)
    dilated = math.ceil(round(math.log(distance + 1, 3), 9))
    assert layers_to_connect("dilated convolution", distance, kernel=3, seed=seed) == dilated


def test_what_cannot_be_connected_is_refused():
    with pytest.raises(ValueError, match="at least 1 apart, got distance=0"):
        layers_to_connect("attention", 0)
    with pytest.raises(ValueError, match="no layer is called 'LSTM'"):
        layers_to_connect("LSTM", 3)


def test_randomness_and_precision_of_the_reader_stay_as_they_were():
    state = torch.get_rng_state()
    gradient_reach(length=4, width=2, seeds=[0])
    layers_to_connect("attention", 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert nn.Linear(1, 1).weight.dtype == torch.float32
