"""The reverse model in JavaScript: its logits and attention are PyTorch's, and all of it fits into 100 kB."""

import json
import re

import numpy as np
import pytest
import torch
from piece_pages import reverse_piece, run_javascript, saved_reverse_model

from course_utils.figure_description import MIME_TYPE
from course_utils.interactive import reverse_live
from course_utils.reverse import ReversePredictor

PROGRAM = "sequences.map((digits) => runReverseModel(readParameters(parameters), digits))"
PROGRAM_RESULT = (
    PROGRAM + ".map(({logits, attention}) => [logits, attention].map((m) => m.map((row) => Array.from(row))))"
)


def parameters_of(piece) -> dict:
    """The parameters in the page, as JavaScript reads them."""
    call = re.search(r"^mount\(.*\(box\) => liveReverse\(box, (.*)\)\);$", piece.html, flags=re.MULTILINE)
    return json.loads(call.group(1))["parameters"]


def small_model(**changes) -> ReversePredictor:
    """A model that was not trained, with every parameter away from its first value."""
    torch.manual_seed(0)
    settings = {"input_dim": 10, "num_classes": 10, "model_dim": 7, "num_heads": 1, "num_layers": 1}
    model = ReversePredictor(**settings | {"lr": 1e-3, "warmup": 0, "max_iters": 10} | changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model.eval()


@pytest.mark.parametrize("model", [saved_reverse_model, small_model], ids=["trained", "odd width"])
def test_logits_and_attention_are_pytorchs_at_every_length(model):
    model = model()
    generator = torch.Generator().manual_seed(7)
    sequences = [torch.randint(10, (1 + number % 16,), generator=generator).tolist() for number in range(64)]
    results = run_javascript(
        ["reverse_model.js"], PROGRAM_RESULT, sequences=sequences, parameters=parameters_of(reverse_piece(model))
    )
    assert {len(digits) for digits in sequences} == set(range(1, 17))
    for digits, (logits, attention) in zip(sequences, results, strict=True):
        inputs = model.one_hot(torch.tensor([digits]))
        with torch.no_grad():
            np.testing.assert_allclose(logits, model(inputs)[0], atol=1e-4)
        np.testing.assert_allclose(attention, model.get_attention_maps(inputs)[0][0, 0], atol=1e-5)


def test_parameters_travel_without_loss_and_the_piece_fits_into_100_kb():
    model = saved_reverse_model()
    piece = reverse_piece(model)
    assert len(piece.html.encode()) <= 100_000
    read = run_javascript(
        ["reverse_model.js"],
        "Object.entries(readParameters(parameters)).map(([name, read]) => [name, read.shape, Array.from(read.values)])",
        parameters=parameters_of(piece),
    )
    state = model.state_dict()
    assert {name for name, _, _ in read} == set(state)
    for name, shape, values in read:
        assert torch.equal(torch.tensor(values).reshape(shape), state[name])
    assert sum(len(values) for _, _, values in read) == 10_346


def test_values_are_described_for_the_comparison():
    piece = reverse_piece(saved_reverse_model())
    described = piece.bundle()[MIME_TYPE]["piece"]
    assert described["kind"] == "liveReverse"
    assert described["outputs"] == described["digits"][::-1]  # the trained model is right
    assert described["attention"]["shape"] == [1, 1, 16, 16]
    assert "16 of its 16 outputs are right" in piece.alt
    json.dumps(piece.bundle(), allow_nan=False)


@pytest.mark.parametrize("changes", [{"num_layers": 2}, {"norm_first": True}])
def test_another_model_is_refused(changes):
    model = small_model(**changes)
    with pytest.raises(ValueError, match="one post-norm block; this state dict is of another model"):
        reverse_live(model.state_dict(), [1, 2], np.zeros((2, 10)), np.eye(2))


def test_another_number_of_classes_and_shapes_that_disagree_are_refused():
    with pytest.raises(ValueError, match="10 digits, this one has 5 in and 5 out"):
        reverse_live(small_model(input_dim=5, num_classes=5).state_dict(), [1, 2], np.zeros((2, 10)), np.eye(2))
    state = small_model().state_dict()
    with pytest.raises(ValueError, match=r"must be \[T\], \[T, 10\] and \[T, T\]"):
        reverse_live(state, [1, 2], np.zeros((3, 10)), np.eye(2))
    with pytest.raises(ValueError, match="from 0 to 9, got 1 to 12"):
        reverse_live(state, [1, 12], np.zeros((2, 10)), np.eye(2))
    with pytest.raises(ValueError, match="add up to 1"):
        reverse_live(state, [1, 2], np.zeros((2, 10)), 2 * np.eye(2))
