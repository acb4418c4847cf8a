import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from course_utils.addition import AdditionDataset, addition_loaders, train_addition
from course_utils.batches import take_whole
from course_utils.training import History


def number(digits: torch.Tensor) -> int:
    return int("".join(str(digit) for digit in digits.tolist()))


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), *[st.integers(0, 10**n - 1)] * 2)), st.booleans())
def test_the_target_holds_the_digits_of_the_sum(numbers, units_first):
    num_digits, a, b = numbers
    source, target = AdditionDataset(torch.tensor([a * 10**num_digits + b]), num_digits, units_first)[0]
    assert (number(source[:num_digits]), number(source[num_digits:])) == (a, b)
    assert target.shape == (num_digits + 1,)
    assert number(target.flip(-1) if units_first else target) == a + b


def test_an_example_by_hand():
    dataset = AdditionDataset(torch.tensor([58_067]))
    assert [each.tolist() for each in dataset[0]] == [[0, 5, 8, 0, 6, 7], [5, 2, 1, 0]]  # 58 + 67 = 125
    assert AdditionDataset(torch.tensor([58_067]), units_first=False)[0][1].tolist() == [0, 1, 2, 5]


def test_whole_batches_are_the_items():
    dataset = AdditionDataset(torch.arange(0, 1_000_000, 99_999))
    (whole,) = DataLoader(dataset, len(dataset), collate_fn=take_whole)
    (stacked,) = DataLoader([dataset[i] for i in range(len(dataset))], len(dataset))
    assert all(torch.equal(one, other) for one, other in zip(whole, stacked, strict=True))


def test_no_pair_is_in_two_splits():
    loaders = addition_loaders(seed=3)
    splits = [{tuple(row) for row in loader.dataset.source.tolist()} for loader in vars(loaders).values()]
    assert [len(split) for split in splits] == [19_200, 1_000, 2_000]
    assert len(set().union(*splits)) == 22_200


def test_pairs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="between 0 and 9999, got some from 0 to 10000"):
        AdditionDataset(torch.tensor([0, 10_000]), num_digits=2)
    with pytest.raises(ValueError, match="num_digits must be at least 1, got 0"):
        AdditionDataset(torch.tensor([0]), num_digits=0)
    with pytest.raises(ValueError, match="profile must be one of quick, full"):
        train_addition(profile="slow")


@pytest.mark.slow
def test_the_quick_recipe_learns_to_add(no_checkpoints):
    history = History()
    model, accuracy = train_addition(seed=0, callbacks=[history])
    assert len(history.train_loss) == 750
    assert accuracy["test_acc"] > 0.9
    written, _ = model.generate(torch.tensor([[9, 9, 9, 0, 0, 1], [1, 2, 3, 4, 5, 6]]), 4)
    assert written.tolist()[1] == [9, 7, 5, 0]
