import pytest
import torch

from course_utils.experiments.beyond_length import (
    KINDS,
    LENGTHS,
    NEAR,
    NO_TARGET,
    SEEDS,
    TRAINED,
    _accuracy,
    _sequences,
    accuracy_by_length,
    predictor,
    recorded,
)


def test_the_target_of_a_digit_is_the_one_before_it():
    digits, before = _sequences(3, 5, torch.Generator().manual_seed(0))
    assert torch.equal(digits.argmax(dim=-1)[:, :-1], before[:, 1:])
    assert (before[:, 0] == NO_TARGET).all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_untrained_model_guesses_at_each_length(kind):
    model = predictor(kind, seed=0).eval()
    for length in (4, max(LENGTHS)):
        assert _accuracy(model, *_sequences(200, length, torch.Generator().manual_seed(1)), 15) < 0.35


def test_without_positions_the_order_does_not_matter_and_with_the_others_it_does():
    x = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0))
    for kind in KINDS:
        model = predictor(kind, seed=0).eval()
        assert torch.allclose(model(x.flip(1)), model(x).flip(1), atol=1e-5) == (kind == "none"), kind


def test_a_few_steps_give_an_accuracy_for_each_length_and_repeat():
    first, second = (accuracy_by_length("rotary", 0, lengths=(8, 20), steps=2) for _ in range(2))
    assert len(first) == 2 and first == second
    with pytest.raises(ValueError, match="got 'absolute'"):
        accuracy_by_length("absolute", 0)


def test_the_committed_result_holds_each_kind_and_seed_and_what_the_notebook_says_of_it():
    measured = recorded()["measured"]
    lengths, accuracy = measured["lengths"], measured["accuracy"]
    assert lengths == list(LENGTHS)
    assert {kind: [len(run) for run in runs] for kind, runs in accuracy.items()} == dict.fromkeys(
        KINDS, [len(LENGTHS)] * len(SEEDS)
    )
    trained, twice = lengths.index(TRAINED), lengths.index(2 * TRAINED)
    for kind in ("learned", "sinusoidal", "rotary", NEAR):
        assert min(run[trained] for run in accuracy[kind]) > 0.95
    worst_rotary = min(run[twice] for run in accuracy["rotary"])
    assert worst_rotary > max(run[twice] for kind in ("learned", "sinusoidal") for run in accuracy[kind])
