"""What a layer costs: counts against torch's own, memory to the byte, and the committed measurements."""

import os

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_utils.experiments.layer_cost import (
    CONVOLUTION,
    EXPLICIT,
    FUSED,
    KERNEL,
    LENGTHS,
    LSTM,
    WIDTHS,
    layer_cost,
    layers,
    multiplications,
    recorded,
)
from course_utils.experiments.peak_memory import peak_memory
from course_utils.experiments.power_law import crossing, exponent

NAMES = (EXPLICIT, FUSED, LSTM, CONVOLUTION)


def memory_exponent(name: str, lengths: tuple[int, ...], width: int = 64) -> float:
    layer = layers(width)[name]
    with torch.no_grad():
        inputs = [torch.zeros(1, length, width) for length in lengths]
        return exponent(lengths, [peak_memory(lambda x=x: layer(x)) for x in inputs])


@pytest.mark.parametrize("name", NAMES)
def test_each_layer_keeps_the_shape(name):
    output = layers(8)[name](torch.zeros(2, 5, 8))
    output = output[0] if isinstance(output, tuple) else output
    assert output.shape == (2, 5, 8)


@pytest.mark.filterwarnings("ignore:TF32")
@pytest.mark.parametrize("name", NAMES)
def test_multiplications_are_those_that_torch_counts(name):
    """Two operations, a product and a sum, for each; kernels that hide their products from the counter are off."""
    layer = layers(8)[name]
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), counter:
        layer(torch.zeros(1, 20, 8))
    assert counter.get_total_flops() == 2 * multiplications(name, 20, 8)


def test_multiplications_grow_as_the_claim_says():
    assert multiplications(LSTM, 10, 6) == 8 * 10 * 36
    assert multiplications(CONVOLUTION, 10, 6) == KERNEL * 10 * 36
    assert multiplications(EXPLICIT, 10, 6) == 4 * 10 * 36 + 2 * 100 * 6
    for name, of_length in ((EXPLICIT, 2), (FUSED, 2), (LSTM, 1), (CONVOLUTION, 1)):
        counts = [multiplications(name, length, 1) for length in (10**6, 10**7)]
        assert exponent((10**6, 10**7), counts) == pytest.approx(of_length, abs=1e-4)


def test_an_unknown_layer_is_named():
    with pytest.raises(ValueError, match=r"no layer is called 'GRU'; there are 'explicit attention'"):
        multiplications("GRU", 1, 1)


def test_memory_of_explicit_attention_is_quadratic_and_of_fused_attention_linear():
    lengths = (1024, 2048, 4096)
    assert memory_exponent(EXPLICIT, lengths) == pytest.approx(2, abs=0.1)
    assert memory_exponent(FUSED, (2048, 4096, 8192)) == pytest.approx(1, abs=0.15)
    assert memory_exponent(LSTM, lengths) == pytest.approx(1, abs=0.1)
    assert memory_exponent(CONVOLUTION, lengths) == pytest.approx(1, abs=0.1)


def test_peak_memory_counts_to_the_byte_what_is_alive_at_once():
    def compute():
        first = torch.zeros(1000)  # 4000 bytes
        second = first + 1  # 4000 more: the peak, 8000
        del first
        return second.double()[:10]  # 8000 beside the 4000 that are left: the peak is 12000

    assert peak_memory(compute) == 12_000
    assert peak_memory(compute) == 12_000


def test_peak_memory_leaves_the_reader_alone(capfd, monkeypatch):
    monkeypatch.delenv("KINETO_LOG_LEVEL", raising=False)
    peak_memory(lambda: torch.zeros(3))
    monkeypatch.setenv("KINETO_LOG_LEVEL", "1")
    with pytest.raises(ZeroDivisionError):
        peak_memory(lambda: 1 / 0)
    assert os.environ["KINETO_LOG_LEVEL"] == "1"


def test_layer_cost_gives_a_number_for_each_length_and_leaves_torch_as_it_was():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    costs = layer_cost(8, (16, 32), repeats=1)
    assert list(costs) == list(NAMES)
    for name, cost in costs.items():
        assert cost["multiplications"] == [multiplications(name, 16, 8), multiplications(name, 32, 8)]
        assert len(cost["seconds"]) == len(cost["bytes"]) == 2
        assert all(0 < short <= long for short, long in zip(cost["seconds"], cost["longest"], strict=True))
        assert min(cost["bytes"]) >= 4 * 16 * 8  # the output at least
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_committed_measurements_bear_out_the_claim():
    measured = recorded()["measured"]
    assert (tuple(measured["lengths"]), measured["kernel"]) == (LENGTHS, KERNEL)
    assert tuple(int(width) for width in measured["widths"]) == WIDTHS
    long = slice(LENGTHS.index(1024), None)

    def fitted(width: int, name: str, of: str) -> float:
        return exponent(LENGTHS[long], measured["widths"][str(width)][name][of][long])

    for width in (32, 64, 128):
        assert fitted(width, EXPLICIT, "seconds") == pytest.approx(2.1, abs=0.4)
        assert fitted(width, FUSED, "seconds") == pytest.approx(1.95, abs=0.15)
        assert fitted(width, EXPLICIT, "bytes") == pytest.approx(2, abs=0.1)
        assert fitted(width, FUSED, "bytes") < 1.1
    for width in WIDTHS:
        assert fitted(width, LSTM, "seconds") == pytest.approx(1, abs=0.2)
        assert fitted(width, CONVOLUTION, "seconds") == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(("power", "factor"), [(2, 3.0), (-1, 0.5), (0.5, 1.0)])
def test_exponent_of_a_power_law_is_found(power, factor):
    x = [1.0, 2.0, 5.0, 30.0]
    assert exponent(x, [factor * each**power for each in x]) == pytest.approx(power)


@pytest.mark.parametrize(
    ("x", "y", "complaint"),
    [([1, 1], [2, 3], "different x"), ([1, 2], [2], "y for each"), ([1, 2], [0, 3], "positive numbers")],
)
def test_numbers_without_an_exponent_are_refused(x, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        exponent(x, y)


def test_crossing_lies_where_straight_lines_in_log_log_meet():
    x = [1.0, 10.0, 100.0]
    assert crossing(x, [each**2 for each in x], [30 * each for each in x]) == pytest.approx(30)
    assert crossing(x, [1, 1, 1], [2, 2, 2]) is None
    assert crossing(x, [2, 2, 2], [1, 1, 1]) is None
    assert crossing(x, [2, 1, 4], [1, 2, 2]) == pytest.approx(10 ** (1 + 0.5))
