"""The exercises of notebook 01: scores, softmax, masks and heads, and what order and length do."""

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.checks.exercise import Case, Choice, Exercise, Law, Mistake, Option, Quantity, WrongValue
from course_utils.checks.inputs import as_cases, normal

NOTEBOOK = "01_attention"


def _softmax(scores: Tensor, axis: int = -1) -> Tensor:
    """Softmax by its definition, in NumPy's double precision."""
    numbers = scores.double().numpy()
    powers = np.exp(numbers - numbers.max(axis=axis, keepdims=True))
    return torch.from_numpy(powers / powers.sum(axis=axis, keepdims=True)).to(scores.dtype)


# ---- attention_scores ------------------------------------------------------------------------------------------------


def _attention_scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.from_numpy(np.einsum("...qd,...kd->...qk", q.numpy(), k.numpy())) / math.sqrt(q.size(-1))


@as_cases
def _score_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])),
        (torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0]])),
        (normal(rng, 2, 5), normal(rng, 3, 5)),
        (normal(rng, 4, 3), normal(rng, 4, 3)),
        (normal(rng, 2, 5, 7), normal(rng, 2, 3, 7)),
        (normal(rng, 2, 3, 4, 16), normal(rng, 2, 3, 6, 16)),
    ]


attention_scores = Exercise(
    name="attention_scores",
    title="Scores and their scale",
    notebook=NOTEBOOK,
    section="Scaled dot-product attention by hand",
    difficulty="easy",
    minutes=5,
    oracle=_attention_scores,
    cases=_score_cases,
    covered="vectors, matrices, batches and heads, with as many queries as keys, more and fewer. A wrong scale raises "
    "no error anywhere: the model trains, only worse",
    mistakes=(
        Mistake(
            "the scores are not scaled",
            lambda q, k: q @ k.mT,
            "Your scores grow with the width of the vectors. What is the variance of a sum of d_k products of "
            "variance 1?",
        ),
        Mistake(
            "scaled by the width, not by its root",
            lambda q, k: q @ k.mT / q.size(-1),
            "You take away more than the width put in. The variance grows by d_k: by how much does the deviation grow?",
        ),
        Mistake(
            "scaled by the number of keys",
            lambda q, k: q @ k.mT / math.sqrt(k.size(-2)),
            "A longer sequence makes your scores smaller. Which size does a single dot product add up over?",
        ),
        Mistake(
            "scaled by the number of queries",
            lambda q, k: q @ k.mT / math.sqrt(q.size(-2)),
            "Asking more questions makes your scores smaller. Which size does a single dot product add up over?",
        ),
        Mistake(
            "multiplied by the root of the width",
            lambda q, k: q @ k.mT * math.sqrt(q.size(-1)),
            "Your scores grow with the width even faster than plain dot products do. In which direction must you "
            "correct?",
        ),
        Mistake(
            "queries and keys have changed places",
            lambda q, k: k @ q.mT / math.sqrt(q.size(-1)),
            "Row i should hold the scores of query i with all keys. What do the rows of your result belong to?",
        ),
        Mistake(
            "only a single matrix comes out right",
            lambda q, k: q @ k.T / math.sqrt(q.size(-1)),
            "With a batch in front it breaks down. Which two axes of k change places, counted from the end?",
        ),
        Mistake(
            "only batches of matrices come out right",
            lambda q, k: q @ k.transpose(1, 2) / math.sqrt(q.size(-1)),
            "It counts the axes of k from the front, and there may be more or fewer of them. How do you count from "
            "the end?",
        ),
        Mistake(
            "a softmax is applied already",
            lambda q, k: (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1),
            "Your rows sum to 1, so they are weights already. What was asked for is what the softmax is taken of.",
        ),
    ),
)


def _rows_sum_to_1(case: Case, weights: Tensor) -> bool:
    return bool(((torch.as_tensor(weights).double().sum(dim=-1) - 1).abs() < 1e-4).all())


def _hidden_weigh_nothing(case: Case, weights: Tensor) -> bool:
    _, mask = case.arguments
    return bool((torch.as_tensor(weights).masked_fill(mask, 0.0) == 0).all())


# ---- attention_weights -----------------------------------------------------------------------------------------------


@as_cases
def _weight_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[0.0, math.log(3.0)]]),),
        (torch.tensor([[0.0, 1.0, 2.0], [2.0, 2.0, 0.0]]),),
        (normal(rng, 4, 3),),
        (normal(rng, 2, 3, 5),),
        (normal(rng, 3, 2, 4, 5),),
        (torch.tensor([[1000.0, 999.0], [-1000.0, -1000.0]]),),
        (normal(rng, 6, 1),),
    ]


attention_weights = Exercise(
    name="attention_weights",
    title="Softmax over the right axis",
    notebook=NOTEBOOK,
    section="Scaled dot-product attention by hand",
    difficulty="easy",
    minutes=5,
    oracle=_softmax,
    cases=_weight_cases,
    laws=(Law("each row sums to 1", _rows_sum_to_1),),
    covered="single matrices, batches, heads, one key, and scores of a thousand. In a square matrix both axes fit, so "
    "only the numbers tell which one was taken",
    mistakes=(
        Mistake(
            "the softmax runs over the queries",
            lambda scores: scores.softmax(dim=-2),
            "Each column of your result sums to 1, and the rows do not. Who shares out its attention, a query or a "
            "key?",
        ),
        Mistake(
            "the softmax runs over the first axis",
            lambda scores: scores.softmax(dim=0),
            "With a batch in front, the sequences of your batch compete with each other. Count the axes from the "
            "other end.",
        ),
        Mistake(
            "the softmax runs over axis 1 whatever the rank",
            lambda scores: scores.softmax(dim=1),
            "A matrix comes out right, and a batch of matrices does not. Where do the keys stand when the rank is not "
            "known?",
        ),
        Mistake(
            "no axis is given to the softmax",
            lambda scores: torch.nn.functional.softmax(scores, dim=0 if scores.dim() == 3 else 1),
            "PyTorch then picks an axis by the rank, with a warning: it takes another one for three axes than for two "
            "or four. Which axis do you mean?",
        ),
        Mistake(
            "the softmax runs over the whole matrix",
            lambda scores: scores.flatten(-2).softmax(dim=-1).view_as(scores),
            "All weights of a matrix together sum to 1. How much attention does each single query have to give?",
        ),
        Mistake(
            "the exponentials overflow",
            lambda scores: scores.exp() / scores.exp().sum(dim=-1, keepdim=True),
            "Large scores give NaN. The softmax stays the same when you subtract one number from a whole row: which "
            "one helps?",
        ),
        Mistake(
            "the largest score of all is taken off every row",
            lambda scores: (p := (scores - scores.max()).exp()) / p.sum(dim=-1, keepdim=True),
            "A row whose scores are far below the largest one of the matrix comes to nothing. Whose largest score "
            "should be taken off?",
        ),
        Mistake(
            "the weights are not normalised",
            lambda scores: scores.exp(),
            "Your weights are positive, but a row does not sum to 1. What is missing after the exponential?",
        ),
        Mistake(
            "the logarithm of the weights",
            lambda scores: scores.log_softmax(dim=-1),
            "Your weights are negative: they are logarithms. That is what a loss wants; what does a weighted mean "
            "want?",
        ),
    ),
)


# ---- masked_weights --------------------------------------------------------------------------------------------------


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Row by row: a softmax over the keys that may be seen, 0 for the others; a row that sees none is 0."""
    scores, mask = torch.broadcast_tensors(scores, mask)
    weights = np.zeros(tuple(scores.shape))
    numbers, visible = scores.double().numpy(), mask.numpy()
    for row in np.ndindex(weights.shape[:-1]):
        seen = visible[row]
        if seen.any():
            powers = np.exp(numbers[row][seen] - numbers[row][seen].max())
            weights[row][seen] = powers / powers.sum()
    return torch.from_numpy(weights).to(scores.dtype)


def _some_mask(rng: np.random.Generator, *shape: int) -> Tensor:
    """A random mask whose rows all see something and, but for the last, not everything."""
    mask = torch.from_numpy(rng.random(shape) < 0.5)
    mask[..., -1] = False
    mask[..., 0] |= ~mask.any(dim=-1)
    mask[..., -1, :] = True
    return mask


@as_cases
def _masked_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[1.0, 2.0]]), torch.tensor([[True, False]])),
        (torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]), torch.tensor([[True, True, False], [True, False, True]])),
        (torch.tensor([[-2e4, -3e4, 0.0]]), torch.tensor([[True, True, False]])),
        (normal(rng, 4, 5), _some_mask(rng, 4, 5)),
        (normal(rng, 2, 3, 4), _some_mask(rng, 2, 3, 4)),
        (normal(rng, 2, 3, 5, 5, scale=4.0), torch.ones(5, 5, dtype=torch.bool).tril()),
    ]


masked_weights = Exercise(
    name="masked_weights",
    title="A mask and its polarity",
    notebook=NOTEBOOK,
    section="Masks",
    difficulty="medium",
    minutes=10,
    oracle=_masked_softmax,
    cases=_masked_cases,
    laws=(Law("a hidden key has weight 0", _hidden_weigh_nothing), Law("each row sums to 1", _rows_sum_to_1)),
    covered="masks of their own and masks that broadcast, very low scores, and rows that see all keys. A mask read "
    "the wrong way round raises no error and trains all the same, on what it should not see",
    mistakes=(
        Mistake(
            "the mask is read the wrong way round",
            lambda scores, mask: scores.masked_fill(mask, -math.inf).softmax(dim=-1),
            "You hide exactly what may be seen. In this course, what does True say about a query and a key?",
        ),
        Mistake(
            "hidden scores are set to 0",
            lambda scores, mask: (scores * mask).softmax(dim=-1),
            "A hidden key still gets weight. A score of 0 is an ordinary score: what is its exponential?",
        ),
        Mistake(
            "the weights are masked and not normalised again",
            lambda scores, mask: scores.softmax(dim=-1) * mask,
            "Hidden keys have weight 0, but the rows no longer sum to 1: the hidden keys took their share before you "
            "acted.",
        ),
        Mistake(
            "hidden scores are not low enough",
            lambda scores, mask: scores.masked_fill(~mask, -1e4).softmax(dim=-1),
            "Where the visible scores are very low, the hidden key wins. Which number is below every score there can "
            "be?",
        ),
        Mistake(
            "the mask is added as numbers",
            lambda scores, mask: (scores + mask).softmax(dim=-1),
            "A visible key gains 1 and a hidden one stays as it was. By how much must a hidden score be lowered?",
        ),
        Mistake(
            "the softmax runs over the queries",
            lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(dim=-2),
            "The mask is right, but your columns sum to 1 where your rows should.",
        ),
        Mistake(
            "the mask is ignored",
            lambda scores, mask: scores.softmax(dim=-1),
            "Your result does not depend on the mask at all.",
        ),
    ),
)


# ---- padding_mask ----------------------------------------------------------------------------------------------------


def _padding_mask(lengths: Tensor, max_len: int) -> Tensor:
    rows = [[place < length for place in range(max_len)] for length in lengths.tolist()]
    return torch.tensor(rows, dtype=torch.bool).view(len(lengths), max_len)


def _places(max_len: int) -> Tensor:
    return torch.arange(max_len)


padding_mask = Exercise(
    name="padding_mask",
    title="From lengths to a padding mask",
    notebook=NOTEBOOK,
    section="Masks",
    difficulty="easy",
    minutes=5,
    oracle=_padding_mask,
    cases=as_cases(
        lambda rng: [
            (torch.tensor([1]), 2),
            (torch.tensor([2, 3]), 3),
            (torch.tensor([3, 1, 5, 2]), 5),
            (torch.tensor([0, 4]), 4),
            (torch.tensor([1, 3, 2]), 3),
            (torch.tensor([6, 2, 1, 3, 3]), 8),
        ]
    ),
    covered="full, short and empty sequences, and room to spare. With this mask a sequence gives the same result in "
    "any batch",
    mistakes=(
        Mistake(
            "one token too many",
            lambda lengths, max_len: _places(max_len) <= lengths[:, None],
            "A sequence of length 1 shows two tokens. At which place does its last token stand, if you count from 0?",
        ),
        Mistake(
            "one token too few",
            lambda lengths, max_len: _places(max_len) < lengths[:, None] - 1,
            "The last real token of each sequence is hidden. At which place does it stand, if you count from 0?",
        ),
        Mistake(
            "True marks the padding",
            lambda lengths, max_len: _places(max_len) >= lengths[:, None],
            "You mark what is to be hidden. PyTorch's `key_padding_mask` does so too; what does this course do?",
        ),
        Mistake(
            "the padding stands in front",
            lambda lengths, max_len: _places(max_len) >= max_len - lengths[:, None],
            "You keep the last places of each row. At which end of a short sequence does the padding stand here?",
        ),
        Mistake(
            "the lengths lie along the tokens",
            lambda lengths, max_len: _places(max_len) < lengths,
            "Each place is compared with a length of its own, if the sizes happen to fit. Along which axis do the "
            "sequences of the batch lie?",
        ),
        Mistake(
            "rows and columns have changed places",
            lambda lengths, max_len: _places(max_len)[:, None] < lengths,
            "The comparison is right, but its result is [max_len, B]. Which of the two needs the extra axis?",
        ),
    ),
)


# ---- causal_mask -----------------------------------------------------------------------------------------------------


def _causal_mask(length: int) -> Tensor:
    return torch.tensor([[key <= query for key in range(length)] for query in range(length)])


def _ones(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool)


causal_mask = Exercise(
    name="causal_mask",
    title="A causal mask",
    notebook=NOTEBOOK,
    section="Masks",
    difficulty="easy",
    minutes=5,
    oracle=_causal_mask,
    cases=as_cases(lambda rng: [(1,), (2,), (3,), (5,), (16,)]),
    covered="lengths from 1 to 16. One diagonal too many, and a language model reads the answer off its input: its "
    "loss looks wonderful and it can generate nothing",
    mistakes=(
        Mistake(
            "each query sees the future",
            lambda length: _ones(length).triu(),
            "The first query sees everything and the last only itself. Which of them is to know more?",
        ),
        Mistake(
            "True marks what is hidden",
            lambda length: _ones(length).triu(diagonal=1),
            "Your mask is True exactly where a query may not look. Some libraries read masks so; which way does this "
            "course?",
        ),
        Mistake(
            "a query does not see itself",
            lambda length: _ones(length).tril(diagonal=-1),
            "The first query sees nothing at all. Is a token part of its own past here?",
        ),
        Mistake(
            "each query sees one step ahead",
            lambda length: _ones(length).tril(diagonal=1),
            "Each query sees the token after it, and that is the very one a language model has to predict.",
        ),
        Mistake(
            "the mask hides nothing",
            _ones,
            "Every query sees every key. Which entries belong to the future?",
        ),
    ),
)


# ---- attend ----------------------------------------------------------------------------------------------------------


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _masked_softmax(_attention_scores(q, k), mask) @ v


def _scores_of(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.size(-1))


@as_cases
def _attend_cases(rng: np.random.Generator) -> list:
    some_blind = _some_mask(rng, 4, 5)
    some_blind[1] = False
    batch = _some_mask(rng, 2, 3, 6)
    batch[0, 2] = batch[1, 0] = False
    eye, v = torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return [
        (eye, eye, v, torch.tensor([[False, False], [True, True]])),
        (eye, eye, v, torch.tensor([[True, False], [True, True]])),
        (normal(rng, 4, 3), normal(rng, 5, 3), normal(rng, 5, 2), some_blind),
        (normal(rng, 2, 3, 4), normal(rng, 2, 6, 4), normal(rng, 2, 6, 7), batch),
        (normal(rng, 3, 4), normal(rng, 3, 4), normal(rng, 3, 4), torch.zeros(3, 3, dtype=torch.bool)),
    ]


attend = Exercise(
    name="attend",
    title="A query that sees nothing",
    notebook=NOTEBOOK,
    section="Masks",
    difficulty="medium",
    minutes=15,
    oracle=_attend,
    cases=_attend_cases,
    covered="rows that see nothing, first, among others and all of them, alone and in batches. One NaN would have "
    "spread through the whole model at the next step",
    mistakes=(
        Mistake(
            "a query that sees nothing gets NaN",
            lambda q, k, v, mask: _scores_of(q, k).masked_fill(~mask, -math.inf).softmax(dim=-1) @ v,
            "All scores of such a row are minus infinity, and its softmax divides 0 by 0. What happens to every sum "
            "that a NaN enters?",
        ),
        Mistake(
            "a query that sees nothing gets the mean of all values",
            lambda q, k, v, mask: _scores_of(q, k).masked_fill(~mask, -1e9).softmax(dim=-1) @ v,
            "It is finite, and worse than an error: a row whose scores are all equally low is a uniform row, so the "
            "query reads everything that it may not.",
        ),
        Mistake(
            "a query that sees nothing sees everything",
            lambda q, k, v, mask: (
                _scores_of(q, k).masked_fill(~mask & mask.any(dim=-1, keepdim=True), -math.inf).softmax(dim=-1) @ v
            ),
            "You keep the scores of such a row, and that is a good way around the NaN. What has to be done to its "
            "weights afterwards?",
        ),
        Mistake(
            "a single NaN clears the whole result",
            lambda q, k, v, mask: torch.where(
                mask.any(dim=-1).all(), _attend(q, k, v, mask), torch.zeros(q.shape[:-1] + v.shape[-1:])
            ),
            "One query that sees nothing takes the values of all the others with it. Decide for each row on its own.",
        ),
        Mistake(
            "the mask is read the wrong way round",
            lambda q, k, v, mask: _attend(q, k, v, ~mask),
            "You hide exactly what may be seen. In this course, what does True say about a query and a key?",
        ),
        Mistake(
            "the scores are not scaled",
            lambda q, k, v, mask: _masked_softmax(q @ k.mT, mask) @ v,
            "Masks and blind rows are right. Go back to the scores: do they stay the same size when the vectors get "
            "wider?",
        ),
    ),
)


# ---- split_heads and merge_heads -------------------------------------------------------------------------------------


def _split_heads(x: Tensor, num_heads: int) -> Tensor:
    return torch.from_numpy(np.stack(np.split(x.numpy(), num_heads, axis=-1), axis=1))


split_heads = Exercise(
    name="split_heads",
    title="Splitting heads",
    notebook=NOTEBOOK,
    section="Multi-head attention by hand",
    difficulty="medium",
    minutes=10,
    oracle=_split_heads,
    cases=as_cases(
        lambda rng: [
            (torch.arange(8.0).view(1, 2, 4), 2),
            (torch.arange(12.0).view(2, 1, 6), 3),
            (torch.arange(60.0).view(2, 5, 6), 3),
            (normal(rng, 3, 4, 4), 4),
            (normal(rng, 3, 4, 4), 1),
            (normal(rng, 2, 3, 20), 4),
        ]
    ),
    covered="1 to 4 heads, odd lengths and widths. The wrong cut has the right shape, so nothing but the numbers can "
    "tell",
    mistakes=(
        Mistake(
            "tokens and heads are mixed up",
            lambda x, h: x.reshape(x.size(0), h, x.size(1), x.size(2) // h),
            "The shape is right and the content is not: a head got the whole of one token and nothing of another. A "
            "reshape keeps the numbers in their order and only draws new borders between them. Where do the first "
            "numbers of the second token have to go?",
        ),
        Mistake(
            "the heads take every H-th number",
            lambda x, h: x.reshape(x.size(0), x.size(1), x.size(2) // h, h).permute(0, 3, 1, 2),
            "Your first head has numbers from all over the token. The heads are to be neighbouring slices of it: "
            "which of the two new axes runs faster?",
        ),
        Mistake(
            "the heads are not moved to the front",
            lambda x, h: x.reshape(x.size(0), x.size(1), h, x.size(2) // h),
            "The cut is right, and the order of axes is [B, T, H, D/H]. Which two axes does a matrix product work on?",
        ),
        Mistake(
            "each head is transposed",
            lambda x, h: x.reshape(x.size(0), x.size(1), h, x.size(2) // h).permute(0, 2, 3, 1),
            "The heads stand where they should, and within a head the tokens stand in the columns.",
        ),
        Mistake(
            "the sequences of the batch are mixed up",
            lambda x, h: x.transpose(0, 1).reshape(x.size(0), x.size(1), h, x.size(2) // h).transpose(1, 2),
            "Tokens of one sequence turn up in another. Did you transpose before you cut?",
        ),
    ),
)


def _merge_heads(heads: Tensor) -> Tensor:
    return torch.from_numpy(np.concatenate(list(np.moveaxis(heads.numpy(), 1, 0)), axis=-1))


merge_heads = Exercise(
    name="merge_heads",
    title="Merging heads",
    notebook=NOTEBOOK,
    section="Multi-head attention by hand",
    difficulty="medium",
    minutes=10,
    oracle=_merge_heads,
    cases=as_cases(
        lambda rng: [
            (torch.arange(8.0).view(1, 2, 2, 2),),
            (torch.arange(12.0).view(1, 3, 2, 2),),
            (torch.arange(60.0).view(2, 3, 5, 2),),
            (normal(rng, 2, 1, 4, 3),),
            (normal(rng, 3, 4, 1, 2),),
            (normal(rng, 2, 3, 4, 5),),
        ]
    ),
    covered="1 to 4 heads, odd lengths and widths. It undoes the split exactly: a head that is cut and merged must "
    "come out as it went in",
    mistakes=(
        Mistake(
            "tokens and heads are mixed up",
            lambda heads: heads.reshape(heads.size(0), heads.size(2), -1),
            "The shape is right, and the content is not: one token got the numbers of several. A reshape keeps the "
            "order of the numbers; which order do they need before it?",
        ),
        Mistake(
            "view refuses what was transposed",
            lambda heads: heads.transpose(1, 2).view(heads.size(0), heads.size(2), -1),
            "The order of the axes is right. `view` never copies, and these numbers no longer lie in memory in that "
            "order.",
        ),
        Mistake(
            "the heads are interleaved",
            lambda heads: heads.permute(0, 2, 3, 1).flatten(2),
            "Each token has its own numbers, but those of the heads alternate. Which axis must run slower, the head "
            "or the place within it?",
        ),
        Mistake(
            "the heads are averaged",
            lambda heads: heads.mean(dim=1),
            "You get the width of one head. The heads are to stand side by side, so that the next matrix can weigh "
            "them.",
        ),
        Mistake(
            "the heads are added up",
            lambda heads: heads.sum(dim=1),
            "You get the width of one head. The heads are to stand side by side, so that the next matrix can weigh "
            "them.",
        ),
        Mistake(
            "the heads stand in reverse order",
            lambda heads: _merge_heads(heads.flip(1)),
            "Each head is whole, and the last one stands first.",
        ),
    ),
)


# ---- order_change ----------------------------------------------------------------------------------------------------


def _order_change(layer, x: Tensor, order: Tensor) -> float:
    moved = layer(torch.stack([x[place] for place in order.tolist()]))
    there = layer(x)
    return max((moved[i] - there[place]).abs().max().item() for i, place in enumerate(order.tolist()))


def self_attention(x: Tensor) -> Tensor:
    """A layer that follows a shuffle of its input."""
    return (x @ x.T).softmax(dim=-1) @ x


def running_mean(x: Tensor) -> Tensor:
    """A layer that does not: what it gives a token depends on those before it."""
    return x.cumsum(dim=0) / torch.arange(1, len(x) + 1)[:, None]


def with_positions(x: Tensor) -> Tensor:
    """A layer that does not, because it adds to each token where it stands."""
    return self_attention(x + torch.arange(len(x))[:, None])


@as_cases
def _order_cases(rng: np.random.Generator) -> list:
    cycle = torch.tensor([1, 2, 0])  # its inverse is another order
    x = torch.tensor([[1.0], [2.0], [4.0]])
    longer = torch.tensor([3, 0, 4, 1, 2])
    so_far = "the layer gives each token the mean of itself and those before it"
    tokens_only = "the layer is attention without weights of its own"
    return [
        Case((running_mean, x, cycle), note=so_far),
        Case((running_mean, -x, cycle), note=so_far),
        Case((self_attention, x, cycle), note=tokens_only),
        Case((torch.neg, x, cycle), note="the layer changes the sign of each number"),
        Case((with_positions, normal(rng, 5, 3), longer), note="the layer adds its place to each token, then attends"),
        Case((running_mean, normal(rng, 5, 4), longer), note=so_far),
        Case((self_attention, normal(rng, 5, 2), longer), note=tokens_only),
        Case((running_mean, -x, torch.tensor([0, 1, 2])), note=so_far),
    ]


order_change = Exercise(
    name="order_change",
    title="A test of equivariance",
    notebook=NOTEBOOK,
    section="Attention does not know the order",
    difficulty="medium",
    minutes=10,
    oracle=_order_change,
    cases=_order_cases,
    covered="layers that follow a shuffle and layers that do not, and orders that are not their own inverse. A swap "
    "of two tokens is its own inverse, so a test with swaps alone would have missed the mistake",
    mistakes=(
        Mistake(
            "the output is not shuffled",
            lambda layer, x, order: (layer(x[order]) - layer(x)).abs().max().item(),
            "You test whether shuffling changes nothing at all. That is invariance; what may happen to the outputs of "
            "an equivariant layer?",
        ),
        Mistake(
            "the output is shuffled the other way",
            lambda layer, x, order: (layer(x[order]) - layer(x)[order.argsort()]).abs().max().item(),
            "You shuffle the outputs by the inverse of the order. Where does the token at place 0 of the shuffled "
            "input come from?",
        ),
        Mistake(
            "the input is not shuffled",
            lambda layer, x, order: (layer(x) - layer(x)[order]).abs().max().item(),
            "The layer never sees another order, so you measure how different the outputs of different tokens are.",
        ),
        Mistake(
            "negative differences are not counted",
            lambda layer, x, order: (layer(x[order]) - layer(x)[order]).max().item(),
            "A difference of -5 is larger than one of 0.1. What do you compare before you take the largest?",
        ),
        Mistake(
            "the mean of the differences",
            lambda layer, x, order: (layer(x[order]) - layer(x)[order]).abs().mean().item(),
            "A mean hides the one token that is wrong among a thousand that are right.",
        ),
    ),
)


# ---- entropy ---------------------------------------------------------------------------------------------------------


def _entropy(weights: Tensor) -> Tensor:
    rows = weights.double().numpy()
    logs = np.log(np.where(rows > 0, rows, 1.0))
    return torch.from_numpy(-(rows * logs).sum(axis=-1)).to(weights.dtype)


@as_cases
def _entropy_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[0.5, 0.5]]),),
        (torch.tensor([[0.25, 0.75], [0.5, 0.5]]),),
        (torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]),),
        (normal(rng, 4, 3).softmax(dim=-1),),
        (normal(rng, 2, 3, 5, scale=3.0).softmax(dim=-1),),
        (torch.zeros(2, 4),),
    ]


entropy = Exercise(
    name="entropy",
    title="How sharp is a row?",
    notebook=NOTEBOOK,
    section="Why the scores are scaled",
    difficulty="medium",
    minutes=10,
    oracle=_entropy,
    cases=_entropy_cases,
    laws=(Law("no entropy is negative", lambda case, output: bool((torch.as_tensor(output) >= -1e-5).all())),),
    covered="even and sharp rows, weights of exactly 0, batches, and rows that see nothing. It tells in one number "
    "whether a head looks at one token or at all of them",
    mistakes=(
        Mistake(
            "a weight of 0 gives NaN",
            lambda weights: -(weights * weights.log()).sum(dim=-1),
            "The logarithm of 0 is minus infinity, and 0 times that is NaN. Towards what does a·log a go when a goes "
            "to 0?",
        ),
        Mistake(
            "the unit is bits",
            lambda weights: _entropy(weights) / math.log(2),
            "Two equal weights give you 1: that is one bit. The task asks for nats; which logarithm belongs to them?",
        ),
        Mistake(
            "the sign is missing",
            lambda weights: -_entropy(weights),
            "Your entropy is negative. Which sign has the logarithm of a number below 1?",
        ),
        Mistake(
            "the sum runs over the queries",
            lambda weights: torch.special.entr(weights).sum(dim=-2),
            "You add up over queries, and each query has an entropy of its own.",
        ),
        Mistake(
            "the mean over the keys, not the sum",
            lambda weights: _entropy(weights) / weights.size(-1),
            "Uniform weights over n keys give log n. Yours are smaller by a factor: which one?",
        ),
        Mistake(
            "one number for everything",
            lambda weights: _entropy(weights).mean(),
            "You get one number, and one was asked for each row.",
        ),
    ),
)


# ---- a number and a choice -------------------------------------------------------------------------------------------


weights_memory = Quantity(
    name="weights_memory",
    title="What twice the length costs",
    notebook=NOTEBOOK,
    section="Attention beside recurrence and convolution",
    difficulty="easy",
    minutes=5,
    expected=2048.0,
    unit="MiB",
    covered="one sequence of 8192 tokens, 8 heads, 4 bytes a number. That is one layer, before any gradient; it is "
    "why fused kernels never write the weights down",
    wrong_values=(
        WrongValue(
            "as much as for half the length",
            512.0,
            "That is what 4096 tokens take, as the task says. How many weights does a query have, and how many "
            "queries are there?",
        ),
        WrongValue(
            "twice as much as for half the length",
            1024.0,
            "You let it grow with the length. Twice as many queries, and each of them has how many weights?",
        ),
        WrongValue(
            "one head only",
            256.0,
            "That is the matrix of a single head. Do heads share their weights?",
        ),
        WrongValue(
            "eight bytes a number",
            4096.0,
            "That is double precision. How many bytes does a number of single precision take?",
        ),
        WrongValue(
            "the weights are counted, not their bytes",
            512.0 * 1024 * 1024,
            "That is how many weights there are. How many bytes does each take, and how many bytes is a MiB?",
        ),
        WrongValue(
            "the unit is GiB",
            2.0,
            "The size is right in another unit: the task asks for MiB.",
        ),
    ),
)


eightfold_length = Quantity(
    name="eightfold_length",
    title="What eight times the length costs in time",
    notebook=NOTEBOOK,
    section="What a layer costs",
    difficulty="medium",
    minutes=5,
    expected=lambda power: 8.0**power,
    covered="the power that was measured, and not the one that is told. A fitted power predicts well within the range "
    "that it was fitted on, and a little beyond",
    wrong_values=(
        WrongValue(
            "eight times the time",
            8.0,
            "That would be a power of 1, as for recurrence. What does the power say that you measured?",
        ),
        WrongValue(
            "the power of the theory",
            64.0,
            "That is 8 squared. The task asks for what follows from the measured power, which is a little less or "
            "more.",
        ),
        WrongValue(
            "eight times the power",
            lambda power: 8.0 * power,
            "You multiply by the power. How does (8 T)^p compare with T^p?",
        ),
        WrongValue(
            "the power to the eighth",
            lambda power: power**8.0,
            "Base and exponent have changed places. How does (8 T)^p compare with T^p?",
        ),
        WrongValue(
            "twice the length",
            lambda power: 2.0**power,
            "That is the factor for a sequence twice as long.",
        ),
    ),
)


why_scale = Choice(
    name="why_scale",
    title="What a missing scale does",
    notebook=NOTEBOOK,
    section="Why the scores are scaled",
    difficulty="easy",
    minutes=3,
    options={
        "a": Option(
            False,
            "Scores of that size are some tens, and single precision reaches beyond 10^38. PyTorch's softmax also "
            "takes the largest score off a row first. Look at the entropy that you recorded: what does it say of the "
            "weights?",
        ),
        "b": Option(
            False,
            "Uniform weights have the largest entropy there is, the dotted line of the figure. In which direction do "
            "the unscaled weights move away from it as the width grows?",
        ),
        "c": Option(
            True,
            "The entropy falls towards 0 and the norm of the Jacobian with it: a query that looks at one key and gets "
            "hardly any gradient cannot learn to look elsewhere.",
        ),
        "d": Option(
            False,
            "The output is a weighted mean of the values whatever the scores are, so it cannot be longer than the "
            "longest value. Large scores do their harm one step earlier.",
        ),
    },
)
