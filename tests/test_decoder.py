import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from course_utils.attention import regroup_per_head
from course_utils.causal_attention import CausalAttention, causal_mask
from course_utils.cross_attention import CrossAttention
from course_utils.decoder import DecoderBlock, TransformerDecoder
from course_utils.key_value_cache import KeyValueCache

BLOCK = {"input_dim": 8, "num_heads": 2, "dim_feedforward": 12}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
MEMORY_MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 0, 1]]).bool()

both_orders = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def randomised(module: nn.Module) -> nn.Module:
    """The module with no parameter at a value, such as 0 or 1, at which a mistake would not show."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return module.eval()


def copy_cross(theirs: nn.MultiheadAttention, ours: CrossAttention) -> None:
    for name in ("weight", "bias"):
        thirds = getattr(theirs, f"in_proj_{name}").chunk(3)
        for projection, rows in zip((ours.q_proj, ours.k_proj, ours.v_proj), thirds, strict=True):
            getattr(projection, name).data.copy_(rows)
    ours.o_proj.load_state_dict(theirs.out_proj.state_dict())


def copy_block(theirs: nn.TransformerDecoderLayer, ours: DecoderBlock) -> None:
    for name in ("weight", "bias"):
        packed = getattr(theirs.self_attn, f"in_proj_{name}")
        getattr(ours.self_attn.qkv_proj, name).data.copy_(regroup_per_head(packed, theirs.self_attn.num_heads))
    copy_cross(theirs.multihead_attn, ours.cross_attn)
    pairs = [
        (theirs.self_attn.out_proj, ours.self_attn.o_proj),
        (theirs.linear1, ours.linear_net[0]),
        (theirs.linear2, ours.linear_net[3]),
        (theirs.norm1, ours.norm1),
        (theirs.norm2, ours.norm2),
        (theirs.norm3, ours.norm3),
    ]
    for source, target in pairs:
        target.load_state_dict(source.state_dict())


def decoder(num_layers: int = 2, **changes) -> TransformerDecoder:
    return randomised(TransformerDecoder(num_layers, **(BLOCK | changes)))


def test_the_last_queries_see_the_keys_up_to_themselves():
    assert causal_mask(3, 3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(2, 4).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal_mask(1, 3).int().tolist() == [[1, 1, 1]]
    with pytest.raises(ValueError, match="num_queries=4 must not exceed num_keys=3"):
        causal_mask(4, 3)


@both_orders
@pytest.mark.parametrize("memory_mask", [None, MEMORY_MASK], ids=["whole memory", "masked memory"])
def test_block_equals_that_of_pytorch(norm_first, memory_mask):
    theirs = randomised(nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm_first))
    ours = DecoderBlock(**BLOCK, norm_first=norm_first)
    copy_block(theirs, ours)
    x, memory = rand(3, 5, 8), rand(3, 4, 8, seed=1)
    expected = theirs(
        x,
        memory,
        tgt_mask=~causal_mask(5, 5),
        memory_key_padding_mask=None if memory_mask is None else ~memory_mask,
    )
    assert_close(ours(x, memory, memory_mask=memory_mask), expected, **CLOSE)


@given(st.integers(1, 7), st.integers(1, 3), st.booleans(), st.integers(0, 100))
def test_later_tokens_never_change_earlier_outputs_to_the_bit(length, num_layers, norm_first, seed):
    model = decoder(num_layers, norm_first=norm_first)
    x, memory = rand(2, length, 8, seed=seed), rand(2, 4, 8, seed=1)
    keep = seed % length
    changed = torch.cat([x[:, :keep], 100 * rand(2, length - keep, 8, seed=seed + 1)], dim=1)
    before, after = model(x, memory), model(changed, memory)
    assert torch.equal(before[:, :keep], after[:, :keep])
    assert not torch.equal(before[:, keep:], after[:, keep:])


@pytest.mark.parametrize("return_attention", [False, True], ids=["fused", "with maps"])
def test_attention_is_causal_on_both_paths(return_attention):
    layer = randomised(CausalAttention(8, 8, 2))
    x, changed = rand(2, 6, 8), rand(2, 6, 8)
    changed[:, 4:] = 1e3
    before, after = (layer(each, return_attention) for each in (x, changed))
    if return_attention:
        (before, maps), (after, _) = before, after
        assert_close(maps.sum(dim=-1), torch.ones(2, 2, 6))
        assert torch.equal(maps, maps.tril())
    assert torch.equal(before[:, :4], after[:, :4])


def test_padding_is_hidden_from_every_token():
    layer = randomised(CausalAttention(8, 8, 2))
    x, mask = rand(1, 5, 8), torch.tensor([[1, 0, 1, 1, 0]]).bool()
    changed = torch.where(mask[..., None], x, torch.tensor(50.0))
    assert torch.equal(layer(x, token_mask=mask)[:, mask[0]], layer(changed, token_mask=mask)[:, mask[0]])


def test_cross_attention_equals_that_of_pytorch_and_gives_nothing_to_masked_memory():
    theirs = randomised(nn.MultiheadAttention(8, 2, batch_first=True))
    ours = CrossAttention(8, 8, 8, 2)
    copy_cross(theirs, ours)
    x, memory = rand(3, 5, 8), rand(3, 4, 8, seed=1)
    expected, their_maps = theirs(
        x, memory, memory, key_padding_mask=~MEMORY_MASK, need_weights=True, average_attn_weights=False
    )
    output, maps = ours(x, memory, return_attention=True, token_mask=MEMORY_MASK)
    assert_close(output, expected, **CLOSE)
    assert_close(maps, their_maps, **CLOSE)
    assert (maps.transpose(1, 3)[~MEMORY_MASK] == 0).all()
    assert_close(ours(x, memory, token_mask=MEMORY_MASK), output, **CLOSE)


def test_a_mask_of_pairs_hides_a_pair_and_a_query_without_keys_gets_nothing():
    layer = CrossAttention(8, 6, 8, 2).eval()
    x, memory = rand(2, 3, 8), rand(2, 4, 6, seed=1)
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
    output, maps = layer(x, memory, mask, return_attention=True)
    assert (maps[:, :, mask == 0] == 0).all()
    assert_close(maps.sum(dim=-1)[0, 0], torch.tensor([1.0, 0.0, 1.0]))
    assert_close(layer(x, memory, mask), output, **CLOSE)
    assert output[:, 1].eq(layer.o_proj.bias).all()


@both_orders
def test_token_by_token_with_caches_gives_what_the_whole_sequence_gives(norm_first):
    model = decoder(3, norm_first=norm_first)
    x, memory = rand(2, 9, 8), rand(2, 4, 8, seed=1)
    caches = model.new_caches()
    pieces = [model(piece, memory, caches=caches) for piece in x.split([1, 1, 4, 2, 1], dim=1)]
    assert_close(torch.cat(pieces, dim=1), model(x, memory), **CLOSE)
    assert [cache.tokens.length for cache in caches] == [9, 9, 9]
    assert [cache.memory.length for cache in caches] == [4, 4, 4]


def test_the_memory_of_a_cache_is_as_large_as_its_keys_and_values():
    cache = KeyValueCache()
    assert (cache.length, cache.num_bytes) == (0, 0)
    for _ in range(5):
        cache.append(torch.zeros(3, 2, 1, 4), torch.zeros(3, 2, 1, 4))
    assert cache.length == 5
    assert cache.num_bytes == 2 * 3 * 2 * 5 * 4 * 4  # keys and values, B, H, T, head_dim, bytes of a float32


@both_orders
def test_maps_are_those_of_the_forward_pass(norm_first):
    model = decoder(2, norm_first=norm_first)
    x, memory = rand(3, 5, 8), rand(3, 4, 8, seed=1)
    on_tokens, on_memory = model.get_attention_maps(x, memory, memory_mask=MEMORY_MASK)
    assert [each.shape for each in on_tokens] == [(3, 2, 5, 5)] * 2
    assert [each.shape for each in on_memory] == [(3, 2, 5, 4)] * 2
    first = model.layers[0](x, memory, memory_mask=MEMORY_MASK)
    _, own, across = model.layers[1](first, memory, memory_mask=MEMORY_MASK, return_attention=True)
    assert_close(on_tokens[1], own, **CLOSE)
    assert_close(on_memory[1], across, **CLOSE)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        TransformerDecoder(0, **BLOCK)
    with pytest.raises(ValueError, match="embed_dim=8, num_heads=3"):
        CrossAttention(8, 8, 8, 3)
    layer = CrossAttention(8, 6, 8, 2)
    for x, memory in [(rand(2, 3, 8), rand(2, 4, 8)), (rand(2, 3, 8), rand(1, 4, 6)), (rand(3, 8), rand(4, 6))]:
        with pytest.raises(ValueError, match="x must be"):
            layer(x, memory)
    with pytest.raises(ValueError, match=r"input_dim=8\], got \[2, 3, 7\]"):
        CausalAttention(8, 8, 2)(rand(2, 3, 7))
