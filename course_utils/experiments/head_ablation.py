"""Question: does a head that attends to where the answer stands matter more than one that does not?

A model of several layers and heads learns to reverse sequences. Each head is then switched off, or made to attend
evenly, and what that costs is compared with the weight that the head gives to the mirrored position, where the answer
stands. If attention told importance, the two would rank the heads alike. Switching off takes away where a head looks
and all else that it gives; even attention takes away only where it looks.

`python -m course_utils.experiments.head_ablation` measures over all seeds and writes the file beside this one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor

from course_utils.attention import MultiheadAttention, scaled_dot_product
from course_utils.experiments import committed
from course_utils.experiments.gradient_steps import train_for
from course_utils.heads import join_heads, split_into_heads
from course_utils.reverse import NUM_CATEGORIES, SEQ_LEN, ReverseDataset, ReversePredictor

PATH = Path(__file__).with_suffix(".json")
LAYERS, HEADS, WIDTH = 2, 4, 32
STEPS = 400
SEEDS = (0, 1, 2, 3, 4)
TESTED = 1_000  # sequences
Edit = Callable[[Tensor], Tensor]  # of the weights [B, H, T, T] of a layer


def recorded() -> dict:
    """The committed results: "measured" and how they came about ("made")."""
    return committed.read(PATH)


class EditedAttention(MultiheadAttention):
    """Multi-head attention whose weights are changed before they are used.

    Args:
        original: the layer; its projections are shared, not copied.
        edit: what to make of the weights [B, H, T, T].
    """

    def __init__(self, original: MultiheadAttention, edit: Edit):
        super().__init__(original.qkv_proj.in_features, original.embed_dim, original.num_heads)
        self.qkv_proj, self.o_proj = original.qkv_proj, original.o_proj
        self.edit = edit

    def forward(self, x: Tensor, mask=None, return_attention: bool = False, *, token_mask=None) -> Tensor:
        """Map [B, T, D] to [B, T, D], without masks and without returning the weights."""
        q, k, v = split_into_heads(self, x)
        _, attention = scaled_dot_product(q, k, v)
        return join_heads(self, self.edit(attention) @ v)


def switched_off(*heads: int) -> Edit:
    """Some heads give nothing: all their weights are 0."""
    return lambda attention: attention.index_fill(1, torch.tensor(heads), 0.0)


def even(*heads: int) -> Edit:
    """Some heads look at everything alike: they give the mean of the values."""
    return lambda attention: attention.index_fill(1, torch.tensor(heads), 1 / attention.size(-1))


def trained(seed: int, steps: int = STEPS) -> ReversePredictor:
    """A model of the reverse task with LAYERS layers and HEADS heads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ReversePredictor(
            NUM_CATEGORIES, WIDTH, NUM_CATEGORIES, num_heads=HEADS, num_layers=LAYERS, lr=1.0, warmup=0, max_iters=1
        )
    data = torch.Generator().manual_seed(1000 + seed)

    def next_loss() -> Tensor:
        sequences = torch.randint(NUM_CATEGORIES, (64, SEQ_LEN), generator=data)
        return F.cross_entropy(model(model.one_hot(sequences)).flatten(0, 1), sequences.flip(-1).flatten())

    train_for(steps, model, next_loss, lr=5e-3)
    return model


@torch.no_grad()
def accuracy(model: ReversePredictor, sequences: Tensor, edits: dict[int, Edit] | None = None) -> float:
    """The share of right digits [N, T], with the weights of some layers (by number, from 0) edited."""
    layers = model.transformer.layers
    originals = [layer.self_attn for layer in layers]
    for number, edit in (edits or {}).items():
        layers[number].self_attn = EditedAttention(originals[number], edit)
    try:
        right = model(model.one_hot(sequences)).argmax(dim=-1) == sequences.flip(-1)
    finally:
        for layer, original in zip(layers, originals, strict=True):
            layer.self_attn = original
    return right.float().mean().item()


def attention_and_damage(model: ReversePredictor, seed: int = 0) -> dict[str, object]:
    """For each head, what it attends to and what it costs to lose it.

    Args:
        model: of the reverse task.
        seed: of the test sequences.

    Returns:
        "accuracy" of the whole model; "weight": the mean weight on the mirrored position, "off" and "even": the loss of
        accuracy when the head is switched off or attends evenly, each as one list over all heads, layer after layer;
        "layer_off" and "layer_even": the same for all heads of a layer at once;
        "rank_correlation_off" and "rank_correlation_even": Spearman's, of "weight" with each loss over the heads; 0
        where all losses are equal.
    """
    sequences = ReverseDataset(NUM_CATEGORIES, SEQ_LEN, TESTED, seed=2000 + seed).data
    whole = accuracy(model, sequences)
    maps = model.get_attention_maps(model.one_hot(sequences))  # for each layer [N, H, T, T]
    weight = torch.cat([each.flip(-1).diagonal(dim1=-2, dim2=-1).mean(dim=(0, 2)) for each in maps]).tolist()

    def losses(edit: Callable[..., Edit]) -> tuple[list[float], list[float]]:
        """What it costs to edit each head, and all heads of each layer."""
        heads = range(maps[0].size(1))
        single = [
            whole - accuracy(model, sequences, {layer: edit(head)}) for layer in range(len(maps)) for head in heads
        ]
        return single, [whole - accuracy(model, sequences, {layer: edit(*heads)}) for layer in range(len(maps))]

    off, layer_off = losses(switched_off)
    evened, layer_even = losses(even)
    return {
        "accuracy": whole,
        "weight": weight,
        "off": off,
        "even": evened,
        "layer_off": layer_off,
        "layer_even": layer_even,
        "rank_correlation_off": _rank_correlation(weight, off),
        "rank_correlation_even": _rank_correlation(weight, evened),
    }


def _rank_correlation(x: list[float], y: list[float]) -> float:
    return float(spearmanr(x, y).statistic) if len(set(y)) > 1 else 0.0


def measure(seeds: Sequence[int] = SEEDS) -> list[dict]:
    """`attention_and_damage` of a model trained from each seed."""
    return [_rounded(attention_and_damage(trained(seed), seed)) for seed in seeds]


def _rounded(results: dict) -> dict:
    return {
        name: [round(each, 5) for each in value] if isinstance(value, list) else round(value, 5)
        for name, value in results.items()
    }


if __name__ == "__main__":
    committed.measure_anew(PATH, measure, seeds=SEEDS, steps=STEPS)
