import pytest

from course_utils.experiments.addition_order import ORDERS, SEEDS, learning, recorded


@pytest.mark.slow
def test_an_epoch_gives_an_accuracy_and_repeats(no_checkpoints):
    first, second = (learning("as it is read", seed=0, max_epochs=1) for _ in range(2))
    assert first == second
    assert first["val_step"] == [150] and len(first["val_acc"]) == 1
    assert 0 <= first["test_acc"] < 0.9


def test_the_committed_result_holds_each_order_and_seed():
    measured = recorded()["measured"]
    assert {order: len(runs) for order, runs in measured.items()} == dict.fromkeys(ORDERS, len(SEEDS))
    for runs in measured.values():
        assert all(run["val_step"] == [150, 300, 450, 600, 750] and len(run["val_acc"]) == 5 for run in runs)
    assert min(run["test_acc"] for run in measured["last digit first"]) > 0.95
