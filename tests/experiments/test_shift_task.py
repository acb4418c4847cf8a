import math

import pytest
import torch

from course_utils.experiments.shift_task import (
    DIGITS,
    GUESSING,
    LENGTH,
    WIDTH,
    shift_batch,
    shift_model,
    train_on_shift,
)


def test_the_target_is_the_digit_before_and_of_the_first_the_last():
    x, target = shift_batch(3, torch.Generator().manual_seed(0))
    digits = x.argmax(dim=-1)
    assert x.shape == (3, LENGTH, DIGITS)
    assert torch.equal(x.sum(dim=-1), torch.ones(3, LENGTH))
    assert torch.equal(target[:, 1:], digits[:, :-1])
    assert torch.equal(target[:, 0], digits[:, -1])


def test_the_model_follows_from_its_seed_and_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    model = shift_model(depth=2, norm_first=True, seed=1)
    assert torch.equal(torch.rand(2), expected)
    assert len(model.transformer.layers) == 2
    assert model.hparams.norm_first
    assert model.hparams.model_dim == WIDTH
    same = shift_model(depth=2, norm_first=True, seed=1)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(model.parameters(), same.parameters(), strict=True))


def test_one_layer_learns_the_task_and_tells_tokens_apart():
    run = train_on_shift(depth=1, rate=0.01, seed=0, steps=150)
    assert len(run["losses"]) == len(run["gradient_norms"]) == 150
    assert run["losses"][0] == pytest.approx(GUESSING, abs=0.3)
    assert run["losses"][-1] < 0.1
    assert run["accuracy"] > 0.95
    assert run["similarity"] < 0.5


def test_a_gradient_is_clipped_for_the_step_and_reported_as_it_was():
    def second_loss(**arguments) -> float:
        run = train_on_shift(depth=1, rate=0.1, seed=0, optimizer="SGD", steps=2, **arguments)
        assert run["gradient_norms"][0] == pytest.approx(first_norm, rel=1e-5)
        return run["losses"][1]

    first_norm = train_on_shift(depth=1, rate=0.1, seed=0, optimizer="SGD", steps=1)["gradient_norms"][0]
    unmoved = second_loss(warmup=50)  # the first step of a warm-up has rate 0
    assert second_loss(clip=1e-6) == pytest.approx(unmoved, abs=1e-5)
    assert abs(second_loss() - unmoved) > 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "adam"}, "one of Adam, RAdam, SGD, got 'adam'"),
        ({"clip": 0.0}, "got 0.0"),
        ({"clip": -1.0}, "-1"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        train_on_shift(depth=1, rate=0.01, seed=0, **arguments)


def test_guessing_is_the_entropy_of_even_digits():
    assert math.exp(GUESSING) == pytest.approx(DIGITS)
