import numpy as np
import pytest
import torch
from torch.testing import assert_close

from course_utils.predictor import TransformerPredictor
from course_utils.schedule import CosineWarmupScheduler

SETTINGS = {
    "input_dim": 5,
    "model_dim": 8,
    "num_classes": 3,
    "num_heads": 2,
    "num_layers": 2,
    "lr": 1e-3,
    "warmup": 10,
    "max_iters": 100,
}
X = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
TOKEN_MASK = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]])


def predictor(**changes) -> TransformerPredictor:
    torch.manual_seed(0)
    return TransformerPredictor(**(SETTINGS | changes))


def test_the_arguments_stand_in_the_order_of_the_tutorial():
    hparams = TransformerPredictor(5, 8, 3, 2, 1, 1e-3, 10, 100, 0.1, 0.2, True).hparams
    assert dict(hparams) == SETTINGS | {"num_layers": 1, "dropout": 0.1, "input_dropout": 0.2, "norm_first": True}


@pytest.mark.parametrize("wrap", [np.float64, torch.tensor, np.array])
def test_hyper_parameters_are_plain_types_whatever_was_given(wrap):
    given = {name: wrap(value) for name, value in (SETTINGS | {"dropout": 0.5, "norm_first": 1}).items()}
    hparams = predictor(**given).hparams
    types = dict.fromkeys(SETTINGS, int)
    types |= {"lr": float, "dropout": float, "input_dropout": float, "norm_first": bool}
    assert {name: type(value) for name, value in hparams.items()} == types


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_checkpoint_loads_with_weights_only_and_predicts_the_same(tmp_path, norm_first):
    model = predictor(norm_first=norm_first, lr=np.float32(0.5)).eval()
    torch.save(
        {
            "state_dict": model.state_dict(),
            "hyper_parameters": dict(model.hparams),
            "pytorch-lightning_version": "2.5.0",
        },
        tmp_path / "model.ckpt",
    )
    again = TransformerPredictor.load_from_checkpoint(tmp_path / "model.ckpt", map_location="cpu", weights_only=True)
    assert torch.equal(again.eval()(X), model(X))


def test_a_subclass_of_ones_own_keeps_its_settings():
    class Own(TransformerPredictor):
        def __init__(self, width: int = 8, **others):
            super().__init__(**{**SETTINGS, "model_dim": width, **others})

    assert Own(16).hparams.model_dim == 16


def test_the_state_dict_has_the_keys_of_the_tutorial():
    parts = {name.rsplit(".", 1)[0] for name in predictor(num_layers=1).state_dict()}
    block = {"self_attn.qkv_proj", "self_attn.o_proj", "linear_net.0", "linear_net.3", "norm1", "norm2"}
    assert parts == {
        "input_net.1",
        "output_net.0",
        "output_net.1",
        "output_net.4",
        *(f"transformer.layers.0.{name}" for name in block),
    }
    assert predictor().transformer.layers[0].linear_net[0].out_features == 2 * SETTINGS["model_dim"]


def test_it_predicts_num_classes_numbers_a_token():
    assert predictor()(X).shape == (3, 4, 3)
    assert predictor()(X[:0]).shape == (0, 4, 3)
    assert predictor()(X[:, :1]).shape == (3, 1, 3)


def test_only_positions_tell_it_of_the_order():
    model, order = predictor().eval(), [2, 0, 3, 1]
    unordered = model(X, add_positional_encoding=False)
    assert_close(model(X[:, order], add_positional_encoding=False), unordered[:, order])
    assert (model(X[:, order]) - model(X)[:, order]).abs().max() > 0.01


@pytest.mark.parametrize("add_positional_encoding", [False, True])
def test_padding_changes_nothing_for_the_real_tokens(add_positional_encoding):
    model = predictor().eval()
    padded = X.masked_fill(TOKEN_MASK[..., None] == 0, 30.0)
    output = model(padded, None, add_positional_encoding, token_mask=TOKEN_MASK)
    for sample, length in enumerate(TOKEN_MASK.sum(1).tolist()):
        alone = model(X[sample : sample + 1, :length], None, add_positional_encoding)
        assert_close(output[sample, :length], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("add_positional_encoding", [False, True])
def test_maps_take_the_arguments_of_forward_and_are_of_its_pass(add_positional_encoding):
    model, mask = predictor().eval(), torch.ones(4, 4).tril()
    layer_inputs = []
    for layer in model.transformer.layers:
        layer.self_attn.register_forward_pre_hook(lambda module, arguments: layer_inputs.append(arguments[0]))
    model(X, mask, add_positional_encoding, token_mask=TOKEN_MASK)
    expected_inputs = layer_inputs.copy()
    maps = model.get_attention_maps(X, mask, add_positional_encoding, token_mask=TOKEN_MASK)
    assert [tuple(each.shape) for each in maps] == [(3, 2, 4, 4)] * 2
    for layer, seen, attention_map in zip(model.transformer.layers, expected_inputs, maps, strict=True):
        assert_close(layer.self_attn(seen, mask, True, token_mask=TOKEN_MASK)[1], attention_map)
        assert not attention_map.triu(1).any()
        assert not attention_map[0, :, :, 2:].any()


def test_dropout_and_input_dropout_are_off_in_evaluation():
    model = predictor(dropout=0.5, input_dropout=0.5)
    assert torch.equal(model.eval()(X), model(X))
    for name in ("dropout", "input_dropout"):
        trained = predictor(**{name: 0.5}).train()
        assert not torch.equal(trained(X), trained(X)), name


def test_the_optimizer_is_adam_with_the_schedule_advanced_at_each_step():
    configured = predictor(lr=0.25).configure_optimizers()
    scheduler = configured["lr_scheduler"]["scheduler"]
    assert isinstance(configured["optimizer"], torch.optim.Adam)
    assert isinstance(scheduler, CosineWarmupScheduler)
    assert (scheduler.warmup, scheduler.max_iters, scheduler.base_lrs) == (10, 100, [0.25])
    assert configured["lr_scheduler"]["interval"] == "step"


@pytest.mark.parametrize("step", ["training_step", "validation_step", "test_step"])
def test_what_a_subclass_must_define_says_so(step):
    with pytest.raises(NotImplementedError, match=f"TransformerPredictor must define {step}"):
        getattr(predictor(), step)(None, 0)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_heads": 3}, "embed_dim=8, num_heads=3"),
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"input_dim": 0}, "input_dim=0"),
        ({"num_classes": 0}, "num_classes=0"),
        ({"model_dim": 0}, "model_dim=0"),
        ({"dropout": 1.5}, "1.5"),
    ],
)
def test_settings_out_of_range_are_refused_by_value(changes, named):
    with pytest.raises(ValueError, match=named):
        predictor(**changes)


@pytest.mark.parametrize("method", ["forward", "get_attention_maps"])
@pytest.mark.parametrize("shape", [(3, 4, 6), (4, 5), (3, 4, 5, 1)])
def test_an_input_of_another_rank_or_width_is_refused_by_both_sizes(method, shape):
    with pytest.raises(ValueError, match="input_dim=5") as caught:
        getattr(predictor(), method)(torch.zeros(shape))
    assert str(list(shape)) in str(caught.value)
