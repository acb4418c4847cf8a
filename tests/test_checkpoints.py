"""Loading a checkpoint: only weights and plain values, only into a model that they fit."""

import io
import os
import pickle
import warnings

import pytest
import torch
from checkpoint_fixtures import FILE, NAME

from course_utils import checkpoints
from course_utils.checkpoints import CheckpointMissingError, CheckpointUnfitError, CheckpointUnsafeError
from course_utils.reverse import ReversePredictor

ARGUMENTS = {
    "input_dim": 10,
    "model_dim": 8,
    "num_classes": 10,
    "num_heads": 1,
    "num_layers": 1,
    "lr": 1e-3,
    "warmup": 5,
    "max_iters": 50,
}


class Command:
    """A pickle that makes a folder when it is opened carelessly."""

    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


def test_a_saved_model_comes_back_in_evaluation_mode(world):
    model = ReversePredictor(**ARGUMENTS, dropout=0.5)
    put(world, content_of(model, world.root))
    loaded = checkpoints.load(ReversePredictor, NAME)
    assert not loaded.training and loaded.hparams == model.hparams
    for key, value in model.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[key], value, rtol=0, atol=0)


def test_equal_models_are_saved_as_equal_bytes_whatever_the_name(world):
    model = ReversePredictor(**ARGUMENTS)
    checkpoints.save(model, world.root / "one.ckpt")
    checkpoints.save(model, world.root / "another.ckpt")
    assert (world.root / "one.ckpt").read_bytes() == (world.root / "another.ckpt").read_bytes()


def test_the_published_checkpoint_loads_without_a_word(world, published_checkpoint, capfd):
    put(world, published_checkpoint.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = checkpoints.load(ReversePredictor, NAME)
    assert model.hparams.max_iters == 3900
    assert capfd.readouterr() == ("", "")


def test_weights_of_a_device_that_is_not_here_come_to_the_cpu(world, monkeypatch):
    monkeypatch.setattr("torch.serialization.location_tag", lambda storage: "cuda:7")
    content = content_of(ReversePredictor(**ARGUMENTS), world.root)
    assert b"cuda:7" in content
    put(world, content)
    model = checkpoints.load(ReversePredictor, NAME)
    assert {str(parameter.device) for parameter in model.parameters()} == {"cpu"}


@pytest.mark.parametrize("form", ["zip", "legacy", "pickle"])
@pytest.mark.parametrize("place", ["hyper_parameters", "state_dict", "beside"])
@pytest.mark.parametrize("function", [os.mkdir, os.system, exec, eval])
@pytest.mark.fault("malicious pickle")
def test_code_in_a_pickle_is_refused_and_does_not_run(world, form, place, function):
    trace = world.root / "ran"
    code = f"mkdir {trace}" if function is os.system else f"__import__('os').mkdir({str(trace)!r})"
    command = Command(function, str(trace) if function is os.mkdir else code)
    checkpoint = {"state_dict": ReversePredictor(**ARGUMENTS).state_dict(), "hyper_parameters": dict(ARGUMENTS)}
    if place == "beside":
        checkpoint["callbacks"] = command
    else:
        checkpoint[place]["lr"] = command
    put(world, serialised(checkpoint, form))  # with its hash in the registry: somebody was fooled
    with pytest.raises(CheckpointUnsafeError) as failure:
        checkpoints.load(ReversePredictor, NAME)
    assert not trace.exists()
    message = str(failure.value)
    assert NAME in message and "nothing of it was run" in message and "checkpoint='none'" in message
    assert "weights_only=False" not in message  # what torch recommends in this case
    assert failure.value.__cause__ is None and failure.value.__suppress_context__
    assert world.files() == [FILE]


def test_the_trap_of_these_tests_works(world):
    trace = world.root / "ran"
    pickle.loads(pickle.dumps(Command(os.mkdir, str(trace))))
    assert trace.exists()


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK\x03\x04 and no more", pickle.dumps([1])], ids=repr)
@pytest.mark.fault("registered file that is no checkpoint")
def test_a_registered_file_that_is_no_checkpoint_is_one_sentence(world, content):
    put(world, content)
    with pytest.raises((CheckpointUnsafeError, CheckpointUnfitError), match=NAME):
        checkpoints.load(ReversePredictor, NAME)


@pytest.mark.fault("damaged file, not opened")
def test_no_byte_of_an_unrecognised_file_reaches_the_unpickler(world, monkeypatch):
    put(world, content_of(ReversePredictor(**ARGUMENTS), world.root))
    world.path.write_bytes(serialised(Command(os.mkdir, str(world.root / "ran")), "pickle"))
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("unpickled"))
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    with pytest.raises(CheckpointMissingError, match=r"tiny\.ckpt is not the registered one"):
        checkpoints.load(ReversePredictor, NAME)


@pytest.mark.fault("file exchanged after it was verified")
def test_a_file_exchanged_after_it_was_verified_goes_no_further(world, monkeypatch):
    put(world, content_of(ReversePredictor(**ARGUMENTS), world.root))
    fetch = checkpoints.fetch

    def fetch_and_exchange(name):
        path = fetch(name)
        path.write_bytes(serialised(Command(os.mkdir, str(world.root / "ran")), "pickle"))
        return path

    monkeypatch.setattr(checkpoints, "fetch", fetch_and_exchange)
    with pytest.raises(CheckpointMissingError, match="changed while it was being read"):
        checkpoints.load(ReversePredictor, NAME)
    assert not (world.root / "ran").exists()


def test_shapes_that_do_not_fit_are_named(world):
    class Wider(ReversePredictor):
        def __init__(self, **arguments):
            super().__init__(**{**arguments, "model_dim": 16})

    put(world, content_of(ReversePredictor(**ARGUMENTS), world.root))
    with pytest.raises(CheckpointUnfitError) as failure:
        checkpoints.load(Wider, NAME)
    message = str(failure.value)
    assert "input_net.1.weight has shape [8, 10] where the model has [16, 10]" in message and "Wider" in message
    assert NAME in message and "checkpoint='none'" in message


def test_missing_and_superfluous_weights_are_named(world):
    checkpoint = {"state_dict": ReversePredictor(**ARGUMENTS).state_dict(), "hyper_parameters": ARGUMENTS}
    checkpoint["state_dict"]["extra"] = checkpoint["state_dict"].pop("output_net.4.bias")
    put(world, serialised(checkpoint, "zip"))
    with pytest.raises(CheckpointUnfitError, match=r"output_net\.4\.bias is missing; extra has no place"):
        checkpoints.load(ReversePredictor, NAME)


def test_arguments_that_the_class_does_not_take_are_named(world):
    checkpoint = {"state_dict": {}, "hyper_parameters": {**ARGUMENTS, "hidden_size": 8}}
    put(world, serialised(checkpoint, "zip"))
    with pytest.raises(CheckpointUnfitError, match="hidden_size"):
        checkpoints.load(ReversePredictor, NAME)


def put(world, content: bytes) -> None:
    """Lay a file into the checkpoint folder, and register it."""
    world.path.write_bytes(content)
    world.register(content=content)


def content_of(model, folder) -> bytes:
    checkpoints.save(model, folder / "saved.ckpt")
    return (folder / "saved.ckpt").read_bytes()


def serialised(value, form: str) -> bytes:
    if form == "pickle":
        return pickle.dumps(value)
    content = io.BytesIO()
    torch.save(value, content, _use_new_zipfile_serialization=form == "zip")
    return content.getvalue()
