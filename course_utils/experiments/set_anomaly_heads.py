"""Claim: heads look at different things, and some single the odd image out.

Measured over all sets: where each looks, how far the maps of two heads lie apart, and what removing one costs.
"""

import copy

import torch
from torch import Tensor

from course_utils.anomaly import AnomalyPredictor, SetAnomalyDataset, with_evidence_computed
from course_utils.batches import eval_loader
from course_utils.set_evaluation import SEEDS, chooser, set_accuracy


def heads(
    model: AnomalyPredictor, features: Tensor, labels: Tensor, rows: Tensor, set_size: int = 10
) -> dict[str, object]:
    """What each head looks at, and the accuracy without it.

    Args:
        model: in evaluation mode.
        features: of all images, [N, D].
        labels: of all images, [N].
        rows: images that sets are made of.
        set_size: images in a set.

    Returns:
        "even": the weight of even attention; "accuracy": of the whole model; "heads": for each layer and head, both
        from 1, the mean weight that ordinary images give to the odd one, that which the odd one gives to itself, and
        the accuracy when its output is set to zero; "without_any_head": the accuracy when all are.
    """
    of_rows, here = features[rows], torch.arange(len(rows))
    quick, evidence = _with_quick_evidence(model, of_rows)

    def accuracy(of: AnomalyPredictor) -> float:
        return round(set_accuracy(chooser(of), evidence, labels[rows], here, set_size, SEEDS[:1]).accuracy, 5)

    from_others, from_itself = _attention_on_odd(quick, evidence, labels[rows], set_size)
    layers, count = from_others.shape
    everywhere = [(layer, head) for layer in range(layers) for head in range(count)]
    return {
        "even": 1 / set_size,
        "accuracy": accuracy(quick),
        "heads": [
            {
                "layer": layer + 1,
                "head": head + 1,
                "weight_of_others_on_odd": round(float(from_others[layer, head]), 4),
                "weight_of_odd_on_itself": round(float(from_itself[layer, head]), 4),
                "accuracy_without": accuracy(_without(quick, [(layer, head)])),
            }
            for layer, head in everywhere
        ],
        "without_any_head": accuracy(_without(quick, everywhere)),
    }


def head_distances(
    model: AnomalyPredictor, features: Tensor, labels: Tensor, rows: Tensor, set_size: int = 10
) -> dict[str, object]:
    """How far apart the attention maps of any two heads lie, and those of one head on two sets.

    The distance of two maps is the share of the weight that a query would have to move to get from one to the other
    (total variation), from 0 to 1, in the mean over queries and sets. That of two heads is taken on the same sets.
    As a yardstick, that of a head from itself is taken between each set and another one.

    Args:
        model: in evaluation mode; the others as in `heads`.
        features: see there.
        labels: see there.
        rows: see there.
        set_size: see there.

    Returns:
        "heads": their names, layer by layer; "between": the distances of two heads on the same sets, [heads, heads];
        "other_set": that of each head from itself on another set, [heads].
    """
    quick, evidence = _with_quick_evidence(model, features[rows])
    sets_of_split = SetAnomalyDataset(evidence, labels[rows], set_size, train=False, seed=SEEDS[0])
    every_set = torch.cat([sets for sets, _, _ in eval_loader(sets_of_split, batch_size=500)])
    another = every_set.roll(len(every_set) // 2, dims=0)  # half the images away, so mostly of other classes
    total_between, total_other = 0, 0
    for sets, others in zip(every_set.split(100), another.split(100), strict=True):
        maps, maps_of_others = _maps_of_heads(quick, sets), _maps_of_heads(quick, others)  # [heads, B, T, T]
        total_between = total_between + torch.stack([_distance(maps, maps[head]) for head in range(len(maps))])
        total_other = total_other + _distance(maps, maps_of_others)
    layers, count = len(quick.transformer.layers), quick.hparams.num_heads
    return {
        "heads": [f"{layer + 1}.{head + 1}" for layer in range(layers) for head in range(count)],
        "between": [[round(value, 4) for value in row] for row in (total_between / len(every_set)).tolist()],
        "other_set": [round(value, 4) for value in (total_other / len(every_set)).tolist()],
    }


def _maps_of_heads(model: AnomalyPredictor, sets: Tensor) -> Tensor:
    """The maps of all heads, layer by layer, [heads, B, T, T]."""
    maps = torch.stack(model.get_attention_maps(sets, add_positional_encoding=False))  # [layers, B, H, T, T]
    return maps.transpose(1, 2).flatten(0, 1)


def _distance(maps: Tensor, others: Tensor) -> Tensor:
    """The sum over sets of the mean distance of their rows: [heads] for maps [heads, B, T, T]."""
    return ((maps - others).abs().sum(dim=-1) / 2).mean(dim=-1).sum(dim=-1)


def _with_quick_evidence(model: AnomalyPredictor, features: Tensor) -> tuple[AnomalyPredictor, Tensor]:
    """The model and what it sees, with what it knows of classes computed once, where it knows of any."""
    return (model, features) if model.class_evidence is None else with_evidence_computed(model, features)


def _attention_on_odd(
    model: AnomalyPredictor, features: Tensor, labels: Tensor, set_size: int
) -> tuple[Tensor, Tensor]:
    """Mean weights on the odd image, the last, over all sets: of the other images and of itself, [layers, H] each."""
    sets_of_split = SetAnomalyDataset(features, labels, set_size, train=False, seed=SEEDS[0])
    total = 0
    for sets, _, _ in eval_loader(sets_of_split, batch_size=500):
        maps = torch.stack(model.get_attention_maps(sets, add_positional_encoding=False))  # [layers, B, H, T, T]
        on_odd = maps[..., -1].sum(dim=1)  # [layers, H, T]
        total = total + on_odd
    mean = total / len(sets_of_split)
    return mean[..., :-1].mean(dim=-1), mean[..., -1]


def _without(model: AnomalyPredictor, removed: list[tuple[int, int]]) -> AnomalyPredictor:
    """A copy of the model that gets nothing from some heads, each given as (layer, head) from 0.

    The output projection adds up what the heads give, a block of its columns for each head; that block is set to zero.
    """
    model = copy.deepcopy(model)
    width = model.hparams.model_dim // model.hparams.num_heads
    with torch.no_grad():
        for layer, head in removed:
            projection = model.transformer.layers[layer].self_attn.o_proj
            projection.weight[:, head * width : (head + 1) * width] = 0
    return model
