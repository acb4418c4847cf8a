"""The exercises of notebook 05: teacher forcing, generating with a cache, rotary positions, cheaper attention."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.checks.exercise import Case, Choice, Exercise, Law, Mistake, Option, Quantity, WrongValue
from course_utils.checks.inputs import as_cases, normal

NOTEBOOK = "05_beyond"


# ---- shifted_target --------------------------------------------------------------------------------------------------


def _shifted_target(target: Tensor, start: int) -> Tensor:
    return torch.tensor([[start, *row[:-1]] for row in target.tolist()])


@as_cases
def _target_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[5, 7]]), 0),
        (torch.tensor([[3]]), 9),
        (torch.tensor([[1, 2, 3], [4, 5, 6]]), 10),
        (torch.from_numpy(rng.integers(10, size=(3, 8))), 10),
        (torch.from_numpy(rng.integers(4, size=(4, 4))), 4),
    ]


shifted_target = Exercise(
    name="shifted_target",
    title="Teacher forcing: what the decoder is given",
    notebook=NOTEBOOK,
    section="Teacher forcing",
    difficulty="easy",
    minutes=5,
    oracle=_shifted_target,
    cases=_target_cases,
    covered="one token and several, one sequence and several, and a start token that is no digit. Forget the shift, "
    "and the loss falls to nothing while the model learns to copy its input",
    mistakes=(
        Mistake(
            "the target is not shifted",
            lambda target, start: target.clone(),
            "At each place the decoder is given the very token that it has to predict. What does it learn from that?",
        ),
        Mistake(
            "shifted to the left",
            lambda target, start: F.pad(target[:, 1:], (0, 1), value=start),
            "At each place the decoder is given the token *after* the one to predict. What has been written when "
            "place t is to be predicted?",
        ),
        Mistake(
            "the last token comes round to the front",
            lambda target, start: target.roll(1, dims=1),
            "The shift is right, and in front stands the last token of the answer. What is known before the first "
            "token?",
        ),
        Mistake(
            "one token too many",
            lambda target, start: F.pad(target, (1, 0), value=start),
            "You return T + 1 tokens. What would the decoder predict after the last of them?",
        ),
        Mistake(
            "one token too few",
            lambda target, start: target[:, :-1],
            "You return T - 1 tokens. What is the first prediction made from?",
        ),
        Mistake(
            "the first token is replaced",
            lambda target, start: F.pad(target[:, 1:], (1, 0), value=start),
            "The start token stands where the first one stood, and the others have not moved.",
        ),
        Mistake(
            "shifted along the batch",
            lambda target, start: F.pad(target[:-1], (0, 0, 1, 0), value=start),
            "You moved whole sequences. Along which axis does time run?",
        ),
    ),
)


# ---- top_k_probabilities ---------------------------------------------------------------------------------------------


def _top_k_probabilities(logits: Tensor, k: int, temperature: float) -> Tensor:
    rows = logits.double().numpy().reshape(-1, logits.size(-1))
    probabilities = np.zeros_like(rows)
    for row, numbers in enumerate(rows):
        best = np.argsort(numbers)[::-1][:k]
        powers = np.exp((numbers[best] - numbers[best[0]]) / temperature)
        probabilities[row, best] = powers / powers.sum()
    return torch.from_numpy(probabilities).float().view(logits.shape)


def _kept(logits: Tensor, k: int) -> Tensor:
    """True for the k largest logits of each row."""
    return logits >= logits.topk(k, dim=-1).values[..., -1:]


@as_cases
def _top_k_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([1.0, 3.0]), 1, 1.0),
        (torch.tensor([1.0, 2.0, 4.0]), 2, 1.0),
        (torch.tensor([1.0, 2.0, 4.0]), 3, 0.5),
        (normal(rng, 2, 6), 3, 2.0),
        (normal(rng, 3, 4, 5) - 4.0, 2, 0.7),
        (normal(rng, 2, 7), 7, 1.5),
    ]


top_k_probabilities = Exercise(
    name="top_k_probabilities",
    title="Choosing the next token",
    notebook=NOTEBOOK,
    section="A task to write: addition",
    difficulty="medium",
    minutes=15,
    oracle=_top_k_probabilities,
    cases=_top_k_cases,
    covered="single rows and batches, one token, some and all of them, cold and warm. With k = 1 this is greedy "
    "decoding, with every token allowed it is plain sampling",
    laws=(
        Law(
            "each row sums to 1",
            lambda case, output: bool((torch.as_tensor(output).double().sum(dim=-1) - 1).abs().max() < 1e-4),
        ),
    ),
    mistakes=(
        Mistake(
            "the k smallest are kept",
            lambda logits, k, temperature: (
                (logits / temperature).masked_fill(~_kept(-logits, k), -math.inf).softmax(dim=-1)
            ),
            "Your most likely tokens are gone.",
        ),
        Mistake(
            "what is left is not normalised again",
            lambda logits, k, temperature: (logits / temperature).softmax(dim=-1) * _kept(logits, k),
            "The tokens that you drop took their share with them. In what order do you drop and normalise?",
        ),
        Mistake(
            "what is dropped gets a logit of 0",
            lambda logits, k, temperature: (logits / temperature * _kept(logits, k)).softmax(dim=-1),
            "Dropped tokens still have a probability. What does a logit have to be for a probability of 0?",
        ),
        Mistake(
            "multiplied by the temperature",
            lambda logits, k, temperature: _top_k_probabilities(logits, k, 1 / temperature),
            "A high temperature makes your choice sharper. Which way should it go?",
        ),
        Mistake(
            "the temperature is ignored",
            lambda logits, k, temperature: _top_k_probabilities(logits, k, 1.0),
            "Your result is the same for every temperature. Does yours come after the softmax, where it cancels?",
        ),
        Mistake(
            "one token too few is kept",
            lambda logits, k, temperature: (
                torch.where(logits > logits.topk(k, dim=-1).values[..., -1:], logits / temperature, -math.inf)
            ).softmax(dim=-1),
            "The k-th best token is gone. Do you compare by > or by >=?",
        ),
        Mistake(
            "all tokens are kept",
            lambda logits, k, temperature: (logits / temperature).softmax(dim=-1),
            "Your result does not depend on k.",
        ),
    ),
)


# ---- cached_attention ------------------------------------------------------------------------------------------------


def _cached_attention(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    keys, values = (
        torch.from_numpy(np.concatenate([old.numpy(), new.numpy()], axis=2)) for old, new in ((keys, k), (values, v))
    )
    return F.scaled_dot_product_attention(q, keys, values), keys, values


def _put(old: Tensor, new: Tensor) -> Tensor:
    return torch.cat([old, new], dim=2)


@as_cases
def _cache_cases(rng: np.random.Generator) -> list:
    def inputs(batch: int, heads: int, seen: int, width: int) -> tuple:
        new = tuple(normal(rng, batch, heads, 1, width) for _ in range(3))
        return (*new, normal(rng, batch, heads, seen, width), normal(rng, batch, heads, seen, width))

    one = torch.tensor([[[[1.0, 0.0]]]])
    other = torch.tensor([[[[0.0, 1.0]]]])
    return [
        (one, one, 2 * one, other, 3 * other),
        Case(inputs(1, 1, 0, 2), note="nothing seen yet"),
        inputs(1, 1, 1, 3),
        inputs(1, 2, 4, 3),
        inputs(2, 3, 7, 4),
        inputs(3, 1, 2, 8),
    ]


cached_attention = Exercise(
    name="cached_attention",
    title="One step with a key-value cache",
    notebook=NOTEBOOK,
    section="The key-value cache",
    difficulty="hard",
    minutes=20,
    oracle=_cached_attention,
    cases=_cache_cases,
    covered="the first token, the second and later ones, batches and heads. The result is that of the whole sequence "
    "computed anew, for one row of work",
    mistakes=(
        Mistake(
            "the newest token does not see itself",
            lambda q, k, v, keys, values: (
                F.scaled_dot_product_attention(q, keys, values),
                _put(keys, k),
                _put(values, v),
            ),
            "You attend first and append afterwards. Is a token part of its own past in a causal mask?",
        ),
        Mistake(
            "the oldest token is dropped",
            lambda q, k, v, keys, values: _cached_attention(q, k, v, keys[:, :, 1:], values[:, :, 1:]),
            "Your cache does not grow. How many tokens has the next query to look at?",
        ),
        Mistake(
            "the newest token sees only itself",
            lambda q, k, v, keys, values: (v.clone(), _put(keys, k), _put(values, v)),
            "Your output is the newest value, whatever was said before.",
        ),
        Mistake(
            "a causal mask hides all but the oldest token",
            lambda q, k, v, keys, values: (
                F.scaled_dot_product_attention(q, _put(keys, k), _put(values, v), is_causal=True),
                _put(keys, k),
                _put(values, v),
            ),
            "Your only query is treated as the first of the sequence. `is_causal` lines a mask up at the top left; "
            "what may the *last* token not see?",
        ),
        Mistake(
            "the newest token stands in front",
            lambda q, k, v, keys, values: (
                F.scaled_dot_product_attention(q, _put(keys, k), _put(values, v)),
                _put(k, keys),
                _put(v, values),
            ),
            "Your output is right, and your cache runs backwards in time.",
        ),
        Mistake(
            "the scores are not scaled",
            lambda q, k, v, keys, values: (
                F.scaled_dot_product_attention(q, _put(keys, k), _put(values, v), scale=1.0),
                _put(keys, k),
                _put(values, v),
            ),
            "The cache is right. Go back to the scores: do they stay the same size when the vectors get wider?",
        ),
        Mistake(
            "the cache is returned as it came",
            lambda q, k, v, keys, values: (
                F.scaled_dot_product_attention(q, _put(keys, k), _put(values, v)),
                keys.clone(),
                values.clone(),
            ),
            "Your output is right, and the next step will not know this token.",
        ),
    ),
)


# ---- rotary ----------------------------------------------------------------------------------------------------------


def _rotary(x: Tensor, first: int) -> Tensor:
    numbers = x.double().numpy()
    pairs = numbers[..., 0::2] + 1j * numbers[..., 1::2]
    length, width = numbers.shape[-2:]
    position = first + np.arange(length)[:, None]
    turned = pairs * np.exp(1j * position / 10000 ** (np.arange(0, width, 2) / width))
    return torch.from_numpy(np.stack([turned.real, turned.imag], axis=-1).reshape(numbers.shape)).float()


def _turned(x: Tensor, first: int, *, sign: float = 1.0, factor: float = 1.0, halves: bool = False) -> Tensor:
    """Rotary positions with the usual slips as options: direction, exponent, and which two numbers form a pair."""
    length, width = x.shape[-2:]
    exponent = factor * torch.arange(0, width, 2, dtype=torch.float64) / width
    angle = sign * (first + torch.arange(length, dtype=torch.float64))[:, None] / 10000.0**exponent
    cosine, sine = angle.cos().float(), angle.sin().float()
    a, b = x.chunk(2, dim=-1) if halves else (x[..., 0::2], x[..., 1::2])
    turned = (a * cosine - b * sine, a * sine + b * cosine)
    return torch.cat(turned, dim=-1) if halves else torch.stack(turned, dim=-1).flatten(-2)


def _added(x: Tensor, first: int) -> Tensor:
    length, width = x.shape[-2:]
    angle = (first + torch.arange(length))[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


@as_cases
def _rotary_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[1.0, 0.0], [1.0, 0.0]]), 0),
        Case((torch.tensor([[0.0, 2.0]]), 3), note="one token, at position 3"),
        (normal(rng, 3, 4), 0),
        (normal(rng, 5, 6), 7),
        (normal(rng, 2, 3, 4, 8), 0),
        (normal(rng, 2, 1, 16), 40),
    ]


rotary = Exercise(
    name="rotary",
    title="Rotary positions",
    notebook=NOTEBOOK,
    section="Positions on longer sequences",
    difficulty="hard",
    minutes=25,
    oracle=_rotary,
    cases=_rotary_cases,
    covered="widths from 2 to 16, batches and heads, and sequences that begin later. Both queries and keys are turned "
    "so, and their dot product then depends on their distance alone",
    laws=(
        Law(
            "no vector changes its length",
            lambda case, output: bool(
                torch.allclose(torch.as_tensor(output).norm(dim=-1).float(), case.arguments[0].norm(dim=-1), atol=1e-4)
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "it turns backwards",
            lambda x, first: _turned(x, first, sign=-1.0),
            "You turn clockwise. On its own that is as good, and it does not fit weights trained the other way. Where "
            "does [1, 0] go when it turns by a small positive angle?",
        ),
        Mistake(
            "the pairs are made of the two halves",
            lambda x, first: _turned(x, first, halves=True),
            "You pair a number of the first half with one of the second, as some libraries do. Which two make a pair "
            "here?",
        ),
        Mistake(
            "the exponent is doubled",
            lambda x, first: _turned(x, first, factor=2.0),
            "The first pair turns rightly and the others too slowly. Does the exponent count pairs or dimensions?",
        ),
        Mistake(
            "the exponent is halved",
            lambda x, first: _turned(x, first, factor=0.5),
            "The first pair turns rightly and the others too fast. Does the exponent count pairs or dimensions?",
        ),
        Mistake(
            "every sequence begins at position 0",
            lambda x, first: _turned(x, 0),
            "Your first token is never turned. With a cache, the newest token comes alone: where does it stand?",
        ),
        Mistake(
            "the encoding is added",
            _added,
            "You add sines and cosines, as notebook 02 does. What is done to a pair of numbers here?",
        ),
        Mistake(
            "all pairs turn equally fast",
            lambda x, first: _turned(x, first, factor=0.0),
            "Every pair turns by the same angle. What makes the hands of the clock differ?",
        ),
    ),
)


# ---- linear_attention ------------------------------------------------------------------------------------------------


def _linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """By the weights, the slow way: row i weighs key j by phi(q_i)·phi(k_j)."""
    q, k, v = (np.asarray(tensor, dtype=np.float64) for tensor in (q, k, v))
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    weights = q @ np.swapaxes(k, -1, -2)
    return torch.from_numpy(weights / weights.sum(axis=-1, keepdims=True) @ v).float()


def _phi(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def _by_features(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q @ (k.mT @ v) / (q @ k.sum(dim=-2)[..., None])


@as_cases
def _linear_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [6.0]])),
        (torch.tensor([[-1.0, 1.0]]), torch.tensor([[1.0, -2.0], [0.0, 0.5]]), torch.eye(2)),
        (normal(rng, 3, 2), normal(rng, 4, 2), normal(rng, 4, 5)),
        (normal(rng, 2, 5, 3), normal(rng, 2, 5, 3), normal(rng, 2, 5, 3)),
        (normal(rng, 2, 3, 6, 4), normal(rng, 2, 3, 6, 4), normal(rng, 2, 3, 6, 4)),
        (normal(rng, 1, 7, scale=2.0), normal(rng, 1, 7), normal(rng, 1, 2)),
    ]


linear_attention = Exercise(
    name="linear_attention",
    title="Attention without a softmax",
    notebook=NOTEBOOK,
    section="Attention that is cheaper",
    difficulty="hard",
    minutes=20,
    oracle=_linear_attention,
    cases=_linear_cases,
    covered="as many queries as keys, more and fewer, batches and heads. With the product of keys and values first, "
    "nothing of size T by T is ever made",
    mistakes=(
        Mistake(
            "the result is not normalised",
            lambda q, k, v: _phi(q) @ (_phi(k).mT @ v),
            "Your output grows with the number of keys: it is a weighted sum, and not a mean. What must it be divided "
            "by?",
        ),
        Mistake(
            "divided by the number of keys",
            lambda q, k, v: _phi(q) @ (_phi(k).mT @ v) / k.size(-2),
            "You divide as if all weights were 1. To what do the weights of a query sum up?",
        ),
        Mistake(
            "the weights of a key sum to 1",
            lambda q, k, v: (w := _phi(q) @ _phi(k).mT) / w.sum(dim=-2, keepdim=True) @ v,
            "You share each key out among the queries. Whose weights have to sum to 1?",
        ),
        Mistake(
            "the feature map can be negative",
            lambda q, k, v: _by_features(F.elu(q), F.elu(k), v),
            "Your weights can be negative, and their sum close to 0. What does the task add to the ELU, and why?",
        ),
        Mistake(
            "only the queries are mapped",
            lambda q, k, v: _by_features(_phi(q), k, v),
            "The keys enter as they are, so that weights can be negative. Which of q, k and v go through the map?",
        ),
        Mistake(
            "the values are mapped as well",
            lambda q, k, v: _by_features(_phi(q), _phi(k), _phi(v)),
            "Your output is never negative, and values may be. Which of q, k and v make the weights?",
        ),
        Mistake(
            "it is softmax attention",
            F.scaled_dot_product_attention,
            "That is full attention, with its matrix of T by T. What replaces the exponential of the score here?",
        ),
        Mistake(
            "the map is a ReLU",
            lambda q, k, v: _by_features(q.relu(), k.relu(), v),
            "Negative numbers become 0, and with them whole rows of weights. Which map does the task name?",
        ),
    ),
)


# ---- window_mask -----------------------------------------------------------------------------------------------------


def _window_mask(length: int, reach: int) -> Tensor:
    return torch.tensor([[abs(query - key) <= reach for key in range(length)] for query in range(length)])


def _distance(length: int) -> Tensor:
    """Query minus key, [T, T]."""
    places = torch.arange(length)
    return places[:, None] - places


window_mask = Exercise(
    name="window_mask",
    title="A window to either side",
    notebook=NOTEBOOK,
    section="Attention that is cheaper",
    difficulty="easy",
    minutes=10,
    oracle=_window_mask,
    cases=as_cases(lambda rng: [(2, 0), (3, 1), (1, 1), (6, 2), (9, 3), (4, 10)]),
    covered="no reach, some, and more than there are tokens. The cost then grows with T times the reach, and far "
    "tokens can only meet over several layers",
    mistakes=(
        Mistake(
            "the reach is not included",
            lambda length, reach: _distance(length).abs() < reach,
            "With a reach of 0 a query does not even see itself. Do you compare by < or by <=?",
        ),
        Mistake(
            "one token too far",
            lambda length, reach: _distance(length).abs() <= reach + 1,
            "With a reach of 0 your query sees its neighbours.",
        ),
        Mistake(
            "only the past",
            lambda length, reach: (_distance(length) >= 0) & (_distance(length) <= reach),
            "Your window ends at the query. Has the task said anything of a causal model?",
        ),
        Mistake(
            "only the future",
            lambda length, reach: (_distance(length) <= 0) & (_distance(length) >= -reach),
            "Your window begins at the query and looks ahead only. To how many sides is it to reach?",
        ),
        Mistake(
            "the reach is that of the whole window",
            lambda length, reach: _distance(length).abs() <= reach // 2,
            "Your window is half as wide as it should be. Is the reach counted to each side or in all?",
        ),
        Mistake(
            "True marks what is hidden",
            lambda length, reach: _distance(length).abs() > reach,
            "Your mask is True where a query may not look. What does True say in this course?",
        ),
        Mistake(
            "no end to the past",
            lambda length, reach: _distance(length) >= -reach,
            "You limit how far a query looks ahead, and not how far back.",
        ),
        Mistake(
            "no end to the future",
            lambda length, reach: _distance(length) <= reach,
            "You limit how far a query looks back, and not how far ahead.",
        ),
    ),
)


# ---- a number and a choice -------------------------------------------------------------------------------------------


cache_memory = Quantity(
    name="cache_memory",
    title="What a cache weighs",
    notebook=NOTEBOOK,
    section="The key-value cache",
    difficulty="easy",
    minutes=5,
    expected=384.0,
    unit="MiB",
    covered="24 layers of 16 heads of width 64, 4096 tokens, 2 bytes a number. It grows with every token, and with "
    "every text that is written at the same time",
    wrong_values=(
        WrongValue(
            "keys or values only",
            192.0,
            "You keep one of the two. What does a step need of the earlier tokens?",
        ),
        WrongValue(
            "one layer only",
            16.0,
            "That is the cache of one layer. Can layers share what they remember?",
        ),
        WrongValue(
            "one head only",
            24.0,
            "That is the cache of one head of each layer.",
        ),
        WrongValue(
            "four bytes a number",
            768.0,
            "That is single precision. How many bytes does a number of half precision take?",
        ),
        WrongValue(
            "the queries are kept as well",
            576.0,
            "You keep three things of each token. When is an old query needed again?",
        ),
        WrongValue(
            "the numbers are counted, not their bytes",
            192.0 * 1024 * 1024,
            "That is how many numbers there are. How many bytes does each take, and how many bytes is a MiB?",
        ),
    ),
)


weight_and_worth = Choice(
    name="weight_and_worth",
    title="What a head shows and what it is worth",
    notebook=NOTEBOOK,
    section="What an attention map explains",
    difficulty="medium",
    minutes=5,
    options={
        "a": Option(
            False,
            "A map says where a head reads from, and not what becomes of what it read. Whether the result depends on "
            "it is found by taking it away, and that is what was done.",
        ),
        "b": Option(
            False,
            "A mistake in the experiment is always worth a look; yet there is a plain reason for such a result that "
            "needs none. What do the other heads of the layer look at?",
        ),
        "c": Option(
            True,
            "Some are spare as long as the others are there, one may carry most of the work, and their maps look "
            "alike. A map is a reason to run an experiment, and no experiment.",
        ),
        "d": Option(
            False,
            "That was measured as well: look at the rows *all* of the table. What does it cost when the whole layer "
            "attends evenly?",
        ),
    },
)
