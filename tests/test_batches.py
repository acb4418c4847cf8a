import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

from course_utils.anomaly import SetAnomalyDataset
from course_utils.batches import WholeBatch, eval_loader, take_whole, train_loader
from course_utils.reverse import ReverseDataset

DATASETS = {
    "reverse": lambda: ReverseDataset(10, 5, size=14, seed=0),
    "anomaly, fixed": lambda: SetAnomalyDataset(torch.randn(14, 3), [0, 1] * 7, 4, train=False),
    "anomaly, drawn anew": lambda: SetAnomalyDataset(torch.randn(14, 3), [0, 1] * 7, 4, train=True),
}
every_dataset = pytest.mark.parametrize("dataset", [make() for make in DATASETS.values()], ids=list(DATASETS))


def batches(loader: DataLoader, seed: int = 0) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(seed)
    return [tuple(batch) for batch in loader]


def assert_same_batches(ones, others) -> None:
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        assert [(t.shape, t.dtype) for t in one] == [(t.shape, t.dtype) for t in other]
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@every_dataset
def test_a_plain_dataloader_gives_the_batches_of_the_courses_loader(dataset: Dataset):
    assert_same_batches(batches(DataLoader(dataset, batch_size=4)), batches(eval_loader(dataset, 4)))
    plain = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
    assert_same_batches(batches(plain), batches(train_loader(dataset, 4)))


@every_dataset
def test_a_subset_gives_the_items_of_the_whole(dataset: Dataset):
    first, *_ = batches(eval_loader(Subset(dataset, [3, 1, 2]), 3))
    torch.manual_seed(0)
    torch.empty((), dtype=torch.int64).random_()  # the seed that a DataLoader draws for its workers
    assert_same_batches([first], [take_whole(dataset.__getitems__([3, 1, 2]))])


def test_items_of_a_data_set_without_whole_batches_are_stacked():
    numbers = TensorDataset(torch.arange(5), torch.arange(5) * 2)
    for dataset in (numbers, ConcatDataset([numbers, numbers])):
        first, *_ = batches(eval_loader(dataset, 3))
        assert [tensor.tolist() for tensor in first] == [[0, 1, 2], [0, 2, 4]]


def test_evaluation_takes_every_item_once_in_order():
    loader = eval_loader(TensorDataset(torch.arange(10)), 4)
    assert [batch[0].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_training_shuffles_anew_each_epoch_and_leaves_out_an_incomplete_batch():
    loader = train_loader(TensorDataset(torch.arange(10)), 4)
    torch.manual_seed(0)
    epochs = [[number for (batch,) in loader for number in batch.tolist()] for _ in range(2)]
    assert [len(set(epoch)) for epoch in epochs] == [8, 8]
    assert epochs[0] != epochs[1]
    assert epochs[0] != sorted(epochs[0])


def test_a_training_set_smaller_than_a_batch_is_refused_by_both_sizes():
    with pytest.raises(ValueError, match="3 items fills no batch of 4"):
        train_loader(TensorDataset(torch.arange(3)), 4)


def test_a_whole_batch_is_a_sequence_of_its_items():
    batch = WholeBatch(torch.arange(6).view(3, 2), torch.tensor([7, 8, 9]))
    assert len(batch) == 3
    assert [(row.tolist(), int(number)) for row, number in batch] == [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]
    assert [tensor.tolist() for tensor in batch[-1]] == [[4, 5], 9]
