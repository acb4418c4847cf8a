import pytest
import torch
from torch.testing import assert_close

from course_utils.seq2seq import SequenceToSequence, shift_right

ARGS = {"num_tokens": 10, "model_dim": 16, "num_heads": 2, "num_layers": 2, "lr": 1e-3, "warmup": 2, "max_iters": 9}


def model(**changes) -> SequenceToSequence:
    torch.manual_seed(0)
    return SequenceToSequence(**(ARGS | changes)).eval()


def tokens(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(10, (batch, length), generator=torch.Generator().manual_seed(seed))


def test_the_target_is_shifted_right_behind_the_start_token():
    assert shift_right(torch.tensor([[4, 5, 6], [7, 8, 9]]), 10).tolist() == [[10, 4, 5], [10, 7, 8]]
    assert shift_right(torch.tensor([[4]]), 10).tolist() == [[10]]


def test_a_token_of_the_target_is_not_used_for_its_own_prediction():
    source, target = tokens(3, 6), tokens(3, 5, seed=1)
    other = target.clone()
    other[:, 2] = (other[:, 2] + 1) % 10
    before, after = model()(source, target), model()(source, other)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3:], after[:, 3:])


@pytest.mark.parametrize("norm_first", [False, True])
def test_generation_with_the_cache_writes_the_same_and_agrees_with_teacher_forcing(norm_first):
    net, source = model(norm_first=norm_first), tokens(4, 6)
    written, logits = net.generate(source, 7)
    without, without_logits = net.generate(source, 7, use_cache=False)
    assert written.shape == (4, 7) and logits.shape == (4, 7, 10)
    assert torch.equal(written, without)
    assert_close(logits, without_logits, atol=1e-5, rtol=1e-5)
    assert_close(net(source, written), logits, atol=1e-5, rtol=1e-5)
    assert torch.equal(logits.argmax(dim=-1), written)


def test_maps_of_the_decoder_have_one_row_for_each_token_to_be_written():
    on_target, on_source = model().get_attention_maps(tokens(3, 6), tokens(3, 5))
    assert [each.shape for each in on_target] == [(3, 2, 5, 5)] * 2
    assert [each.shape for each in on_source] == [(3, 2, 5, 6)] * 2


def test_no_tokens_are_refused():
    with pytest.raises(ValueError, match="num_tokens must be at least 1, got 0"):
        model(num_tokens=0)
