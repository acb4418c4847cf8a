import pytest
import torch
from torch.testing import assert_close

from course_utils.attention import MultiheadAttention
from course_utils.experiments.head_ablation import (
    HEADS,
    LAYERS,
    SEEDS,
    EditedAttention,
    accuracy,
    attention_and_damage,
    even,
    recorded,
    switched_off,
    trained,
)


def layer_and_input() -> tuple[MultiheadAttention, torch.Tensor]:
    torch.manual_seed(0)
    return MultiheadAttention(8, 8, 2).eval(), torch.randn(3, 5, 8)


def test_without_a_change_the_layer_is_the_same():
    layer, x = layer_and_input()
    assert_close(EditedAttention(layer, lambda attention: attention)(x), layer(x))


def test_a_head_that_is_off_is_a_head_whose_columns_of_the_output_are_zero():
    layer, x = layer_and_input()
    off = EditedAttention(layer, switched_off(1))(x)
    both = EditedAttention(layer, switched_off(0, 1))(x)
    with torch.no_grad():
        layer.o_proj.weight[:, 4:] = 0
    assert_close(off, layer(x))
    assert_close(both, layer.o_proj.bias.expand(3, 5, 8))


def test_an_even_head_gives_each_query_the_same():
    layer, x = layer_and_input()
    output = EditedAttention(layer, even(0, 1))(x)
    assert_close(output, output[:, :1].expand_as(output))


def test_an_edit_leaves_the_model_as_it_was():
    model = trained(seed=0, steps=1)
    sequences = torch.randint(10, (20, 16), generator=torch.Generator().manual_seed(0))
    before = accuracy(model, sequences)
    accuracy(model, sequences, {0: switched_off(0), 1: even(1, 2)})
    assert accuracy(model, sequences) == before
    assert all(type(layer.self_attn) is MultiheadAttention for layer in model.transformer.layers)


def test_each_head_has_a_weight_and_a_damage():
    results = attention_and_damage(trained(seed=0, steps=1))
    assert [len(results[name]) for name in ("weight", "off", "even")] == [LAYERS * HEADS] * 3
    assert [len(results[name]) for name in ("layer_off", "layer_even")] == [LAYERS] * 2
    assert results["weight"] == pytest.approx([1 / 16] * LAYERS * HEADS, abs=0.03)  # untrained: nearly even


def test_the_committed_result_holds_each_seed_and_what_the_notebook_says_of_it():
    runs = recorded()["measured"]
    assert len(runs) == len(SEEDS)
    assert all(run["accuracy"] > 0.99 for run in runs)
    heads = [
        head for run in runs for head in zip(run["weight"], run["off"], run["even"], strict=True)
    ]  # weight on the mirrored position, loss when off, loss when even
    attending = [even for weight, _, even in heads if weight > 0.5]
    assert sum(even < 0.005 for even in attending) >= 5  # attends, and does not matter
    assert max(off for weight, off, _ in heads if weight < 0.2) > 0.2  # does not attend, and matters
    assert max(even for weight, _, even in heads if weight < 0.2) < 0.005  # but not by where it looks
    assert min(run["layer_even"][1] for run in runs) > 0.7  # all attending heads together do
