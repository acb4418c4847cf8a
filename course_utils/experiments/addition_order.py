"""Claim: a sum is easier to write from its last digit to its first than as it is read.

A decoder cannot take back what it has written. From the last digit on, each digit follows from two digits and a carry;
as it is read, the first digit already depends on all of them. Lee et al. (2023), Teaching Arithmetic to Small
Transformers, find so for models without an encoder. Refuted if models that write the other way learn as fast.

`python -m course_utils.experiments.addition_order` trains both ways over all seeds and writes the file beside this one.
"""

from collections.abc import Sequence
from pathlib import Path

from course_utils.addition import train_addition
from course_utils.experiments import committed
from course_utils.training import History

PATH = Path(__file__).with_suffix(".json")
ORDERS = {"last digit first": True, "as it is read": False}
SEEDS = (0, 1, 2)


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


def learning(order: str, seed: int, max_epochs: int | None = None) -> dict[str, object]:
    """Train by the quick recipe, writing in one order.

    Args:
        order: one of ORDERS.
        seed: of the pairs and of the training.
        max_epochs: None for as many as the recipe has.

    Returns:
        "val_acc" after each epoch and "test_acc" at the end: shares of sums written without a mistake.
    """
    history = History()
    _, accuracy = train_addition(units_first=ORDERS[order], seed=seed, max_epochs=max_epochs, callbacks=[history])
    return {
        "val_acc": [round(each, 4) for each in history.val_acc],
        "val_step": history.val_step,
        "test_acc": round(accuracy["test_acc"], 4),
    }


def measure(seeds: Sequence[int] = SEEDS) -> dict[str, list[dict]]:
    """For each order, `learning` of each seed."""
    return {order: [learning(order, seed) for seed in seeds] for order in ORDERS}


if __name__ == "__main__":
    committed.measure_anew(PATH, measure, seeds=SEEDS)
