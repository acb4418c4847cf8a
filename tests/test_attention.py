import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from course_utils.attention import MultiheadAttention, expand_mask, regroup_per_head, scaled_dot_product

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
MASK_TYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
TOLERANCE = {"cpu": 1e-5, "cuda": 1e-2}  # a GPU may multiply float32 in TF32, which keeps ten bits

IDENTITY = torch.eye(2)
VALUES = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def rand(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def attention_layer(input_dim: int = 8, embed_dim: int = 8, num_heads: int = 2, seed: int = 0) -> MultiheadAttention:
    """A layer whose biases are not zero, so that a mistake in them shows."""
    torch.manual_seed(seed)
    layer = MultiheadAttention(input_dim, embed_dim, num_heads)
    for projection in (layer.qkv_proj, layer.o_proj):
        nn.init.normal_(projection.bias)
    return layer


def pytorch_twin(layer: MultiheadAttention) -> nn.MultiheadAttention:
    """PyTorch's layer, and ours changed to compute the same."""
    twin = nn.MultiheadAttention(layer.embed_dim, layer.num_heads, batch_first=True)
    with torch.no_grad():
        nn.init.normal_(twin.in_proj_bias)
        layer.qkv_proj.weight.copy_(regroup_per_head(twin.in_proj_weight, layer.num_heads))
        layer.qkv_proj.bias.copy_(regroup_per_head(twin.in_proj_bias, layer.num_heads))
        twin.out_proj.load_state_dict(layer.o_proj.state_dict())
    return twin


def by_definition(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention one query at a time, over the keys that it may see: [T, d] and a boolean [Tq, Tk]."""
    attention = torch.zeros(len(q), len(k), dtype=q.dtype)
    for query in range(len(q)):
        keys = [key for key in range(len(k)) if mask[query, key]]
        exponentials = [math.exp(float(q[query] @ k[key]) / math.sqrt(q.size(-1))) for key in keys]
        for key, exponential in zip(keys, exponentials, strict=True):
            attention[query, key] = exponential / sum(exponentials)
    return attention @ v, attention


def as_rank_4(mask: Tensor, shape: tuple[int, int, int, int]) -> Tensor:
    """What a mask of rank 2 to 4 means: a boolean for each sample, head, query and key."""
    lead = {2: (1, 1), 3: (mask.size(0), 1), 4: tuple(mask.shape[:2])}[mask.dim()]
    return (mask != 0).reshape(*lead, *mask.shape[-2:]).expand(shape)


@st.composite
def shapes(draw) -> tuple[int, int, int]:
    """Batch, heads, length."""
    return draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))


@st.composite
def shapes_and_masks(draw) -> tuple[tuple[int, int, int], Tensor]:
    """Sizes, and a mask for them of any rank and type, in which any size may be 1."""
    batch, heads, length = draw(shapes())
    full = draw(st.sampled_from([(length, length), (batch, length, length), (batch, heads, length, length)]))
    shape = [draw(st.sampled_from([1, size])) for size in full]
    bits = draw(st.lists(st.booleans(), min_size=math.prod(shape), max_size=math.prod(shape)))
    return (batch, heads, length), torch.tensor(bits).view(shape).to(draw(st.sampled_from(MASK_TYPES)))


class TestScaledDotProduct:
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_a_masked_key_weighs_exactly_0_however_small_the_other_logits(self, dtype):
        q = torch.ones(1, 1, dtype=dtype)
        k = torch.tensor([[-2e4], [-3e4], [0.0]], dtype=dtype)
        values, attention = scaled_dot_product(q, k, k, torch.tensor([1, 1, 0]))
        assert attention.tolist() == [[1.0, 0.0, 0.0]]
        assert values.item() == k[0].item()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_a_query_that_sees_no_key_gets_zeros_and_finite_gradients(self, dtype):
        q, k, v = (tensor.to(dtype).requires_grad_() for tensor in (IDENTITY.clone(), IDENTITY.clone(), VALUES.clone()))
        values, attention = scaled_dot_product(q, k, v, torch.tensor([[0, 0], [1, 1]]))
        assert values[0].tolist() == [0.0, 0.0]
        assert attention[0].tolist() == [0.0, 0.0]
        tolerance = 0.02 if dtype.itemsize == 2 else 1e-4
        assert_close(values[1].float(), torch.tensor([2.3395, 3.3395]), atol=tolerance, rtol=0)
        values.sum().backward()
        assert all(tensor.grad.isfinite().all() for tensor in (q, k, v))
        assert q.grad[0].tolist() == [0.0, 0.0]

    def test_1_in_the_mask_means_may_attend(self):
        values, attention = scaled_dot_product(IDENTITY, IDENTITY, VALUES, torch.tensor([[1, 0], [1, 1]]))
        assert values[0].tolist() == [1.0, 2.0]
        assert attention[0].tolist() == [1.0, 0.0]
        assert_close(values[1], torch.tensor([2.3395, 3.3395]), atol=1e-4, rtol=0)

    @pytest.mark.parametrize("mask", [None, torch.tensor([[1, 0, 1], [1, 1, 1], [0, 0, 1], [0, 1, 0]])])
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_equals_the_function_of_pytorch_in_value_and_gradient(self, dtype, mask):
        inputs = [rand(2, 4, 6), rand(2, 3, 6, seed=1), rand(2, 3, 5, seed=2)]
        ours, theirs = ([tensor.to(dtype).requires_grad_() for tensor in inputs] for _ in range(2))
        values, _ = scaled_dot_product(*ours, mask)
        expected = F.scaled_dot_product_attention(*theirs, attn_mask=None if mask is None else mask.bool())
        tolerance = {"atol": 0.05, "rtol": 0.05} if dtype.itemsize == 2 else {}
        assert values.dtype == dtype
        assert_close(values, expected, **tolerance)
        for loss in (values, expected):
            (loss * rand(*loss.shape, seed=3)).sum().backward()
        for our, their in zip(ours, theirs, strict=True):
            assert_close(our.grad, their.grad, **tolerance)

    @given(shapes(), st.data())
    def test_follows_the_definition_for_any_mask(self, sizes, data):
        d_v, length_k, length_q = sizes
        bits = st.lists(st.booleans(), min_size=length_q * length_k, max_size=length_q * length_k)
        mask = torch.tensor(data.draw(bits)).view(length_q, length_k)
        q, k, v = rand(length_q, 4), rand(length_k, 4, seed=1), rand(length_k, d_v, seed=2)
        values, attention = scaled_dot_product(q, k, v, mask)
        expected_values, expected_attention = by_definition(q, k, v, mask)
        assert_close(attention, expected_attention)
        assert_close(values, expected_values)
        assert not attention[~mask].any()
        assert_close(attention.sum(-1), mask.any(-1).float())

    def test_its_gradient_is_that_of_finite_differences_also_for_a_row_that_sees_nothing(self):
        inputs = [rand(2, 3, 4, dtype=torch.float64, seed=seed).requires_grad_() for seed in range(3)]
        mask = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]])
        assert torch.autograd.gradcheck(lambda q, k, v: scaled_dot_product(q, k, v, mask), inputs)

    def test_scores_beyond_the_range_of_float16_stay_finite_if_the_scaled_ones_are_within(self):
        q = k = torch.full((2, 64), 60.0, dtype=torch.float16)  # the product is 230,400, a float16 ends at 65,504
        _, attention = scaled_dot_product(q, k, k)
        assert attention.tolist() == [[0.5, 0.5], [0.5, 0.5]]

    @pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 3, 1)])
    def test_takes_any_number_of_leading_sizes(self, lead):
        values, attention = scaled_dot_product(rand(*lead, 4, 6), rand(*lead, 5, 6), rand(*lead, 5, 7))
        assert values.shape == (*lead, 4, 7)
        assert attention.shape == (*lead, 4, 5)

    def test_no_keys_give_zero_values(self):
        values, attention = scaled_dot_product(rand(3, 4), rand(0, 4), rand(0, 2))
        assert values.tolist() == [[0.0, 0.0]] * 3
        assert attention.shape == (3, 0)

    def test_the_mask_is_left_as_it_was(self):
        mask = torch.tensor([[0, 0], [0, 1]])
        scaled_dot_product(IDENTITY, IDENTITY, VALUES, mask)
        assert mask.tolist() == [[0, 0], [0, 1]]

    @pytest.mark.parametrize(
        ("error", "arguments", "named"),
        [
            (ValueError, (rand(3, 4), rand(3, 5), rand(3, 5)), ["[3, 4]", "[3, 5]"]),
            (ValueError, (rand(3, 4), rand(5, 4), rand(6, 4)), ["[5, 4]", "[6, 4]"]),
            (ValueError, (rand(2, 3, 4), rand(5, 3, 4), rand(5, 3, 4)), ["[2, 3, 4]", "[5, 3, 4]"]),
            (ValueError, (rand(2, 3, 4), rand(2, 3, 4), rand(7, 3, 4)), ["[2, 3, 4]", "[7, 3, 4]"]),
            (ValueError, (rand(4), rand(4), rand(4)), ["[4]"]),
            (ValueError, (rand(3, 0), rand(3, 0), rand(3, 2)), ["[3, 0]"]),
            (ValueError, (rand(3, 4), rand(5, 4), rand(5, 4), torch.ones(3, 4)), ["[3, 5]", "[3, 4]"]),
            (ValueError, (rand(3, 4), rand(5, 4), rand(5, 4), torch.ones(2, 3, 5)), ["[3, 5]", "[2, 3, 5]"]),
            (TypeError, (rand(3, 4).long(), rand(3, 4).long(), rand(3, 4)), ["int64"]),
            (TypeError, (rand(3, 4), rand(3, 4).double(), rand(3, 4)), ["float32", "float64"]),
            (TypeError, (rand(3, 4), rand(3, 4), rand(3, 4), [[True] * 3] * 3), ["list"]),
        ],
    )
    def test_inputs_that_do_not_fit_are_refused_by_their_sizes_or_types(self, error, arguments, named):
        with pytest.raises(error) as caught:
            scaled_dot_product(*arguments)
        assert all(name in str(caught.value) for name in named)

    @pytest.mark.parametrize("value", [-1e9, float("-inf"), float("nan"), 0.5, 2])
    def test_a_mask_of_other_values_than_0_and_1_is_refused(self, value):
        with pytest.raises(ValueError, match="only 0 and 1"):
            scaled_dot_product(IDENTITY, IDENTITY, VALUES, torch.tensor([[1, value], [1, 1]]))


class TestExpandMask:
    @pytest.mark.parametrize(
        ("shape", "expanded"),
        [((4, 5), (1, 1, 4, 5)), ((3, 4, 5), (3, 1, 4, 5)), ((3, 2, 4, 5), (3, 2, 4, 5)), ((1, 1), (1, 1, 1, 1))],
    )
    def test_each_rank_has_one_meaning(self, shape, expanded):
        mask = torch.arange(math.prod(shape)).view(shape)
        assert expand_mask(mask).shape == expanded
        assert expand_mask(mask).flatten().tolist() == mask.flatten().tolist()

    @pytest.mark.parametrize("rank", [0, 1, 5])
    def test_any_other_rank_is_refused_by_rank_and_shape(self, rank):
        with pytest.raises(ValueError, match=rf"rank {rank} and shape {list((2,) * rank)}".replace("[", r"\[")):
            expand_mask(torch.ones((2,) * rank))


class TestMultiheadAttention:
    def test_the_input_may_be_of_another_width_than_the_embedding(self):
        output, attention = MultiheadAttention(13, 323, 19)(rand(3, 11, 13), return_attention=True)
        assert output.shape == (3, 11, 323)
        assert attention.shape == (3, 19, 11, 11)

    @pytest.mark.parametrize("heads", [1, 4])
    def test_the_weights_of_each_head_come_back_also_of_a_single_one(self, heads):
        _, attention = MultiheadAttention(8, 8, heads)(rand(2, 16, 8), return_attention=True)
        assert attention.shape == (2, heads, 16, 16)
        assert_close(attention.sum(-1), torch.ones(2, heads, 16))
        assert heads == 1 or not torch.allclose(attention[:, 0], attention[:, 1])

    def test_padding_is_not_read_as_query_by_key_where_batch_and_length_are_equal(self):
        token_mask = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
        _, attention = attention_layer()(rand(4, 4, 8), return_attention=True, token_mask=token_mask)
        assert attention[0, :, -1].tolist() == [[1.0, 0.0, 0.0, 0.0]] * 2
        assert not attention.masked_select(token_mask[:, None, None, :] == 0).any()

    @given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
    def test_real_tokens_of_a_padded_batch_equal_those_of_the_unpadded_run(self, lengths, return_attention):
        layer, longest = attention_layer(), max(lengths)
        x = rand(len(lengths), longest, 8)
        token_mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
        padded = x.masked_fill(~token_mask[..., None], 1e4)
        output = layer(padded, None, return_attention, token_mask=token_mask)
        output = output[0] if return_attention else output
        for sample, length in enumerate(lengths):
            assert_close(output[sample, :length], layer(x[sample : sample + 1, :length])[0], atol=1e-5, rtol=1e-5)

    def test_a_sample_of_nothing_but_padding_gives_the_bias_and_finite_gradients(self):
        layer, x = attention_layer(), rand(2, 3, 8).requires_grad_()
        token_mask = torch.tensor([[0, 0, 0], [1, 1, 1]])
        output = layer(x, token_mask=token_mask)
        assert_close(output[0], layer.o_proj.bias.expand(3, 8))
        output.sum().backward()
        assert not x.grad[0].any()
        assert all(tensor.grad.isfinite().all() for tensor in (x, *layer.parameters()))

    @given(shapes_and_masks(), st.booleans())
    def test_a_mask_means_the_same_in_each_rank_and_type(self, sizes_and_mask, pad):
        (batch, heads, length), mask = sizes_and_mask
        layer = attention_layer(6, 6 * heads, heads)
        x = rand(batch, length, 6)
        token_mask = (torch.arange(length) < length - 1).expand(batch, length) if pad else None
        output, attention = layer(x, mask, True, token_mask=token_mask)
        allowed = as_rank_4(mask, (batch, heads, length, length))
        if pad:
            allowed = allowed & token_mask[:, None, None, :]
        assert not attention[~allowed].any()
        assert_close(attention.sum(-1), allowed.any(-1).float())

        q, k, v = layer.qkv_proj(x).detach().view(batch, length, heads, 18).transpose(1, 2).chunk(3, dim=-1)
        for sample in range(batch):
            head_values = [by_definition(*(t[sample, h] for t in (q, k, v, allowed)))[0] for h in range(heads)]
            assert_close(output[sample], layer.o_proj(torch.cat(head_values, dim=-1)), atol=1e-5, rtol=1e-5)
        assert_close(layer(x, mask, token_mask=token_mask), output, atol=1e-5, rtol=1e-5)

    @given(shapes_and_masks())
    def test_gradients_with_and_without_the_weights_agree(self, sizes_and_mask):
        (batch, heads, length), mask = sizes_and_mask
        gradients = []
        for return_attention in (False, True):
            layer, x = attention_layer(6, 6 * heads, heads), rand(batch, length, 6).requires_grad_()
            output = layer(x, mask, return_attention)
            output = output[0] if return_attention else output
            (output * rand(*output.shape, seed=1)).sum().backward()
            gradients.append([x.grad, *(parameter.grad for parameter in layer.parameters())])
        for fused, explicit in zip(*gradients, strict=True):
            assert_close(fused, explicit, atol=1e-4, rtol=1e-4)

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("return_attention", [False, True])
    def test_a_permuted_set_gives_the_permuted_output(self, device, return_attention):
        layer, x = attention_layer().to(device), rand(2, 7, 8).to(device)
        order = torch.randperm(7, generator=torch.Generator().manual_seed(1)).to(device)
        one, other = layer(x, None, return_attention), layer(x[:, order], None, return_attention)
        tolerance = {"atol": TOLERANCE[device], "rtol": TOLERANCE[device]}
        if return_attention:
            (one, attention), (other, permuted_attention) = one, other
            assert_close(permuted_attention, attention[..., order, :][..., order], **tolerance)
        assert_close(other, one[:, order], **tolerance)

    @given(shapes_and_masks(), st.randoms(use_true_random=False))
    def test_tokens_and_mask_permuted_together_give_the_permuted_output(self, sizes_and_mask, random):
        (batch, heads, length), mask = sizes_and_mask
        order = list(range(length))
        random.shuffle(order)
        mask = as_rank_4(mask, (batch, heads, length, length))
        layer, x = attention_layer(6, 6 * heads, heads), rand(batch, length, 6)
        permuted = layer(x[:, order], mask[..., order, :][..., order])
        assert_close(permuted, layer(x, mask)[:, order], atol=1e-5, rtol=1e-5)

    @pytest.mark.parametrize("masked", [False, True])
    @pytest.mark.parametrize("padded", [False, True])
    def test_equals_the_layer_of_pytorch_in_value_and_gradient_on_real_tokens(self, masked, padded):
        layer = attention_layer()
        twin = pytorch_twin(layer)
        mask = torch.ones(5, 5).tril() if masked else None
        token_mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]) if padded else None
        real = torch.ones(3, 5, 1) if token_mask is None else token_mask[..., None]
        x, x_twin = (rand(3, 5, 8).requires_grad_() for _ in range(2))

        output, attention = layer(x, mask, True, token_mask=token_mask)
        expected, expected_attention = twin(
            *(x_twin,) * 3,
            attn_mask=None if mask is None else mask == 0,
            key_padding_mask=None if token_mask is None else token_mask == 0,
            average_attn_weights=False,
        )
        assert_close(output * real, expected * real, atol=1e-6, rtol=1e-5)
        assert_close(attention * real[:, None], expected_attention * real[:, None], atol=1e-6, rtol=1e-5)
        for result in (output, expected):
            (result * real * rand(3, 5, 8, seed=1)).sum().backward()
        assert_close(x.grad, x_twin.grad, atol=1e-5, rtol=1e-5)
        for name in ("weight", "bias"):
            packed = getattr(twin, f"in_proj_{name}").grad
            assert_close(getattr(layer.qkv_proj, name).grad, regroup_per_head(packed, 2), atol=1e-5, rtol=1e-5)
            assert_close(getattr(layer.o_proj, name).grad, getattr(twin.out_proj, name).grad, atol=1e-5, rtol=1e-5)

    def test_packed_weights_copied_without_regrouping_compute_something_else(self):
        layer, x = attention_layer(), rand(2, 5, 8)
        twin = pytorch_twin(layer)
        expected = twin(x, x, x)[0]
        assert_close(layer(x), expected, atol=1e-6, rtol=0)
        with torch.no_grad():
            layer.qkv_proj.weight.copy_(twin.in_proj_weight)
        assert (layer(x) - expected).abs().max() > 0.1

    def test_rows_are_regrouped_from_all_queries_first_to_each_head_for_itself(self):
        packed = torch.tensor([11, 12, 21, 22, 31, 32])  # q₁ q₂ k₁ k₂ v₁ v₂
        assert regroup_per_head(packed, 2).tolist() == [11, 21, 31, 12, 22, 32]
        assert regroup_per_head(packed, 1).tolist() == packed.tolist()
        assert regroup_per_head(packed[:, None], 2).shape == (6, 1)

    @pytest.mark.parametrize("heads", [0, 3])
    def test_a_projection_that_does_not_divide_by_the_heads_is_not_regrouped(self, heads):
        with pytest.raises(ValueError, match=rf"= {3 * heads}.*\[6, 4\]"):
            regroup_per_head(torch.ones(6, 4), heads)

    @pytest.mark.parametrize("token_mask", [None, torch.arange(40).expand(2, 40) < 30])
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_an_ordinary_forward_keeps_no_tensor_of_length_by_length(self, dtype, token_mask):
        layer, x = MultiheadAttention(4, 4, 2).to(dtype), rand(2, 40, 4, dtype=dtype).requires_grad_()
        saved = []

        def note(tensor: Tensor) -> Tensor:
            saved.append((tensor.numel(), tensor.untyped_storage().nbytes() // tensor.element_size()))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            layer(x, token_mask=token_mask)
            assert max(map(max, saved)) < 40 * 40
            layer(x, return_attention=True, token_mask=token_mask)
            assert max(map(max, saved)) >= 2 * 2 * 40 * 40  # the hooks do see it where it is kept

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_works_in_each_floating_point_type(self, dtype):
        layer, x = attention_layer().to(dtype), rand(2, 5, 8, dtype=dtype)
        mask, token_mask = torch.ones(5, 5).tril(), torch.tensor([[1, 1, 1, 1, 0]] * 2)
        output, attention = layer(x, mask, True, token_mask=token_mask)
        expected = layer.float()(x.float(), mask, token_mask=token_mask)
        assert output.dtype == attention.dtype == dtype
        assert_close(output.float(), expected.float(), atol=0.06 if dtype.itemsize == 2 else 1e-5, rtol=0)

    @pytest.mark.parametrize("return_attention", [False, True])
    @pytest.mark.parametrize(("batch", "length"), [(0, 5), (2, 1), (0, 1), (2, 0)])
    def test_an_empty_batch_and_a_single_token_work_with_each_mask(self, batch, length, return_attention):
        mask, token_mask = torch.ones(length, length), torch.ones(batch, length)
        x = rand(batch, length, 8).requires_grad_()
        output = attention_layer()(x, mask, return_attention, token_mask=token_mask)
        if return_attention:
            output, attention = output
            assert attention.shape == (batch, 2, length, length)
        assert output.shape == (batch, length, 8)
        output.sum().backward()
        assert x.grad.shape == x.shape

    def test_weights_are_xavier_uniform_over_each_whole_matrix_and_biases_are_zero(self):
        torch.manual_seed(0)
        layer = MultiheadAttention(48, 96, 4)
        for projection in (layer.qkv_proj, layer.o_proj):
            bound = math.sqrt(6 / (projection.in_features + projection.out_features))
            assert 0.99 * bound < projection.weight.abs().max() <= bound
            assert_close(projection.weight.std().item(), bound / math.sqrt(3), rtol=0.05, atol=0)
            assert not projection.bias.any()

    def test_its_parameters_are_named_as_in_the_tutorial(self):
        state = MultiheadAttention(5, 8, 2).state_dict()
        assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
            "qkv_proj.weight": (24, 5),
            "qkv_proj.bias": (24,),
            "o_proj.weight": (8, 8),
            "o_proj.bias": (8,),
        }

    @pytest.mark.parametrize(
        ("sizes", "named"),
        [
            ((8, 8, 0), "8, 8 and 0"),
            ((8, 8, -2), "8, 8 and -2"),
            ((0, 8, 2), "0, 8 and 2"),
            ((8, 10, 4), "embed_dim=10, num_heads=4"),
        ],
    )
    def test_sizes_that_do_not_fit_are_refused_by_name(self, sizes, named):
        with pytest.raises(ValueError, match=named):
            MultiheadAttention(*sizes)

    @pytest.mark.parametrize(
        ("error", "x_shape", "masks", "named"),
        [
            (ValueError, (3, 5, 7), {}, ["input_dim=8", "[3, 5, 7]"]),
            (ValueError, (5, 8), {}, ["input_dim=8", "[5, 8]"]),
            (ValueError, (3, 5, 8), {"mask": torch.ones(5)}, ["rank 1", "[5]"]),
            (ValueError, (3, 5, 8), {"mask": torch.ones(1, 1, 1, 5, 5)}, ["rank 5", "[1, 1, 1, 5, 5]"]),
            (ValueError, (3, 5, 8), {"mask": torch.ones(3, 5)}, ["[3, 2, 5, 5]", "[3, 5]", "token_mask"]),
            (ValueError, (3, 5, 8), {"mask": torch.ones(2, 5, 5)}, ["[3, 2, 5, 5]", "[2, 5, 5]"]),
            (ValueError, (1, 5, 8), {"mask": torch.ones(4, 5, 5)}, ["[1, 2, 5, 5]", "[4, 5, 5]"]),
            (ValueError, (3, 5, 8), {"mask": torch.ones(3, 4, 5, 5)}, ["[3, 2, 5, 5]", "[3, 4, 5, 5]"]),
            (ValueError, (3, 5, 8), {"mask": torch.full((5, 5), -1e9)}, ["only 0 and 1", "mask == 0"]),
            (ValueError, (3, 5, 8), {"token_mask": torch.ones(3, 6)}, ["[3, 5]", "[3, 6]"]),
            (ValueError, (3, 5, 8), {"token_mask": torch.ones(5)}, ["[3, 5]", "[5]"]),
            (ValueError, (3, 5, 8), {"token_mask": torch.ones(1, 5)}, ["[3, 5]", "[1, 5]"]),
            (ValueError, (3, 5, 8), {"token_mask": torch.full((3, 5), 2)}, ["only 0 and 1"]),
            (TypeError, (3, 5, 8), {"mask": [[1] * 5] * 5}, ["list"]),
            (TypeError, (3, 5, 8), {"token_mask": [[1] * 5] * 3}, ["list"]),
        ],
    )
    def test_inputs_that_do_not_fit_are_refused_by_their_sizes(self, error, x_shape, masks, named):
        with pytest.raises(error) as caught:
            attention_layer()(rand(*x_shape), **masks)
        assert all(name in str(caught.value) for name in named)
