"""The training loop of the small experiments."""

import pytest
import torch
from torch import nn

from course_utils.batches import eval_loader
from course_utils.experiments.gradient_steps import endless, train_for


def test_it_takes_the_steps_it_is_told_and_minimises():
    network, seen = nn.Linear(1, 1, bias=False), []
    nn.init.zeros_(network.weight)

    def next_loss():
        assert network.training
        return (network(torch.ones(1, 1)) - 3.0).square().mean()

    train_for(200, network, next_loss, lr=0.1, warmup=10, after_step=seen.append)
    assert seen == list(range(1, 201))
    assert not network.training
    assert float(network.weight.detach()) == pytest.approx(3.0, abs=0.01)


def test_a_long_gradient_is_clipped():
    network = nn.Linear(1, 1, bias=False)
    norms = []
    train_for(
        3,
        network,
        lambda: 1e6 * network(torch.ones(1, 1)).sum(),
        lr=0.1,
        clip=2.0,
        after_step=lambda step: norms.append(float(network.weight.grad.norm())),
    )
    assert norms == pytest.approx([2.0] * 3, rel=1e-4)


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="at least 1 step, got steps=0"):
        train_for(0, nn.Linear(1, 1), lambda: None, lr=0.1)


def test_batches_begin_again_after_the_last():
    batches = endless(eval_loader(torch.utils.data.TensorDataset(torch.arange(5)), batch_size=2))
    assert [next(batches)[0].tolist() for _ in range(4)] == [[0, 1], [2, 3], [4], [0, 1]]
