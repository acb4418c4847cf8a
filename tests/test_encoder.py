import pytest
import torch
from torch import nn
from torch.testing import assert_close

from course_utils.attention import regroup_per_head
from course_utils.encoder import EncoderBlock, TransformerEncoder

BLOCK = {"input_dim": 8, "num_heads": 2, "dim_feedforward": 12}
MASK = torch.tensor([[1, 0, 0, 0, 0], [1, 1, 0, 0, 1], [1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 1, 1, 1]])
TOKEN_MASK = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]])
CLOSE = {"atol": 1e-5, "rtol": 1e-5}

both_orders = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
any_masks = pytest.mark.parametrize(
    ("mask", "token_mask"), [(None, None), (MASK, None), (None, TOKEN_MASK), (MASK, TOKEN_MASK)]
)


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def encoder(num_layers: int = 2, **changes) -> TransformerEncoder:
    torch.manual_seed(0)
    return TransformerEncoder(num_layers, **(BLOCK | changes))


def randomised(module: nn.Module) -> nn.Module:
    """The module with no parameter at a value, such as 0 or 1, at which a mistake would not show."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return module


def copy_block(theirs: nn.TransformerEncoderLayer, ours: EncoderBlock) -> None:
    """Give our block the parameters of PyTorch's."""
    with torch.no_grad():
        for name in ("weight", "bias"):
            packed = getattr(theirs.self_attn, f"in_proj_{name}")
            getattr(ours.self_attn.qkv_proj, name).copy_(regroup_per_head(packed, theirs.self_attn.num_heads))
    pairs = [
        (theirs.self_attn.out_proj, ours.self_attn.o_proj),
        (theirs.linear1, ours.linear_net[0]),
        (theirs.linear2, ours.linear_net[3]),
        (theirs.norm1, ours.norm1),
        (theirs.norm2, ours.norm2),
    ]
    for source, target in pairs:
        target.load_state_dict(source.state_dict())


def pytorch_block(norm_first: bool) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm_first)


def assert_same(ours, theirs, mask, token_mask, their_mask_name: str) -> None:
    """Same values and same gradient of the input on the real tokens, and same gradient of the norms."""
    real = torch.ones(3, 5, 1) if token_mask is None else token_mask[..., None]
    x, x_theirs = (rand(3, 5, 8).requires_grad_() for _ in range(2))
    their_masks = {
        their_mask_name: None if mask is None else mask == 0,
        "src_key_padding_mask": None if token_mask is None else token_mask == 0,
    }
    output, expected = ours(x, mask, token_mask=token_mask), theirs(x_theirs, **their_masks)
    assert_close(output * real, expected * real, **CLOSE)
    for result in (output, expected):
        (result * real * rand(3, 5, 8, seed=2)).sum().backward()
    assert_close(x.grad, x_theirs.grad, **CLOSE)
    our_block = ours.layers[0] if hasattr(ours, "layers") else ours
    their_block = theirs.layers[0] if hasattr(theirs, "layers") else theirs
    for our, their in [
        (our_block.norm1, their_block.norm1),
        (our_block.norm2, their_block.norm2),
        (our_block.linear_net[0], their_block.linear1),
        (our_block.linear_net[3], their_block.linear2),
    ]:
        assert_close(our.weight.grad, their.weight.grad, atol=1e-4, rtol=1e-4)


@both_orders
@any_masks
def test_a_block_equals_the_layer_of_pytorch_in_value_and_gradient(norm_first, mask, token_mask):
    theirs = randomised(pytorch_block(norm_first))
    ours = EncoderBlock(**BLOCK, norm_first=norm_first)
    copy_block(theirs, ours)
    assert_same(ours, theirs, mask, token_mask, "src_mask")


@both_orders
@any_masks
def test_a_stack_equals_the_encoder_of_pytorch_in_value_and_gradient(norm_first, mask, token_mask):
    final_norm = nn.LayerNorm(8) if norm_first else None
    theirs = nn.TransformerEncoder(pytorch_block(norm_first), 3, norm=final_norm, enable_nested_tensor=False)
    randomised(theirs)
    ours = encoder(3, norm_first=norm_first)
    for their_block, our_block in zip(theirs.layers, ours.layers, strict=True):
        copy_block(their_block, our_block)
    if norm_first:
        ours.norm.load_state_dict(final_norm.state_dict())
    assert_same(ours, theirs, mask, token_mask, "mask")


@both_orders
def test_maps_of_a_later_layer_respect_the_padding_of_the_earlier_ones(norm_first):
    model, x = encoder(norm_first=norm_first), rand(1, 5, 8)
    token_mask = torch.tensor([[1, 1, 1, 0, 0]])
    changed = x.clone()
    changed[:, 3:] = 100
    maps, maps_changed = (model.get_attention_maps(each, token_mask=token_mask) for each in (x, changed))
    for one, other in zip(maps, maps_changed, strict=True):
        assert torch.equal(one[..., :3, :], other[..., :3, :])
        assert not one[..., 3:].any()
    assert torch.equal(model(x, token_mask=token_mask)[:, :3], model(changed, token_mask=token_mask)[:, :3])


@both_orders
@any_masks
@pytest.mark.parametrize("training", [False, True])
def test_maps_are_those_of_the_very_forward_pass(norm_first, mask, token_mask, training):
    model, x = encoder(3, norm_first=norm_first, dropout=0.3).train(training), rand(3, 5, 8)
    inputs = []
    for layer in model.layers:
        layer.self_attn.register_forward_pre_hook(lambda module, arguments: inputs.append(arguments[0]))
    torch.manual_seed(5)
    model(x, mask, token_mask=token_mask)
    seen_by_forward = inputs.copy()
    torch.manual_seed(5)
    maps = model.get_attention_maps(x, mask, token_mask=token_mask)
    assert len(maps) == 3
    for layer, attention_map, layer_input in zip(model.layers, maps, seen_by_forward, strict=True):
        assert attention_map.shape == (3, 2, 5, 5)
        _, expected = layer.self_attn(layer_input, mask, True, token_mask=token_mask)
        assert_close(attention_map, expected, **CLOSE)


def test_maps_carry_no_gradient():
    assert not any(attention_map.requires_grad for attention_map in encoder().get_attention_maps(rand(1, 5, 8)))


@both_orders
def test_dropout_is_off_in_evaluation_and_on_in_training(norm_first):
    model, x = encoder(dropout=0.5, norm_first=norm_first), rand(2, 5, 8)
    assert torch.equal(model.eval()(x), model(x))
    assert not torch.equal(model.train()(x), model(x))


@both_orders
def test_real_tokens_equal_those_of_the_unpadded_run_through_the_whole_stack(norm_first):
    model, x = encoder(3, norm_first=norm_first), rand(3, 5, 8)
    output = model(x.masked_fill(TOKEN_MASK[..., None] == 0, 50.0), token_mask=TOKEN_MASK)
    for sample, length in enumerate(TOKEN_MASK.sum(1).tolist()):
        assert_close(output[sample, :length], model(x[sample : sample + 1, :length])[0], **CLOSE)


@both_orders
def test_a_token_that_sees_nothing_has_finite_gradients(norm_first):
    model, x = encoder(norm_first=norm_first), rand(2, 5, 8).requires_grad_()
    model(x, torch.zeros(5, 5), token_mask=torch.zeros(2, 5)).sum().backward()
    assert x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@both_orders
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_each_floating_point_type_gives_the_float32_result_to_its_rounding(norm_first, dtype):
    model, x = encoder(norm_first=norm_first), rand(3, 5, 8).to(dtype)
    expected = model(x.float(), MASK, token_mask=TOKEN_MASK)
    output = model.to(dtype)(x, MASK, token_mask=TOKEN_MASK)
    assert output.dtype == dtype
    assert_close(output.float(), expected, atol=0.1 if dtype.itemsize == 2 else 1e-5, rtol=0)


@pytest.mark.parametrize("shape", [(0, 5, 8), (2, 1, 8)])
def test_an_empty_batch_and_a_single_token_work(shape):
    assert encoder()(rand(*shape)).shape == shape
    batch, length, _ = shape
    maps = encoder().get_attention_maps(rand(*shape))
    assert [attention_map.shape for attention_map in maps] == [(batch, 2, length, length)] * 2


@both_orders
def test_the_state_dict_has_the_keys_of_the_tutorial_and_pre_norm_a_final_norm(norm_first):
    block_keys = ["self_attn.qkv_proj", "self_attn.o_proj", "linear_net.0", "linear_net.3", "norm1", "norm2"]
    expected = {f"layers.{i}.{key}.{kind}" for i in (0, 1) for key in block_keys for kind in ("weight", "bias")}
    expected |= {"norm.weight", "norm.bias"} if norm_first else set()
    assert encoder(norm_first=norm_first).state_dict().keys() == expected


def test_the_layers_start_from_different_weights():
    first, second = (layer.linear_net[0].weight for layer in encoder().layers)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("num_layers", "changes", "named"),
    [(0, {}, "num_layers must be at least 1, got 0"), (1, {"num_heads": 3}, "embed_dim=8, num_heads=3")],
)
def test_settings_out_of_range_are_refused_by_value(num_layers, changes, named):
    with pytest.raises(ValueError, match=named):
        encoder(num_layers, **changes)


def test_an_input_of_another_width_is_refused_by_both_sizes():
    with pytest.raises(ValueError, match=r"input_dim=8.*\[2, 5, 7\]"):
        encoder()(rand(2, 5, 7))
