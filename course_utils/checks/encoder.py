"""The exercises of notebook 02: layer norm, residuals, positions, the schedule, and what a block weighs."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.checks.exercise import Case, Choice, Exercise, Law, Mistake, Option
from course_utils.checks.inputs import as_cases, normal

NOTEBOOK = "02_encoder"


# ---- layer_norm ------------------------------------------------------------------------------------------------------


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    return F.layer_norm(x, [x.size(-1)], gamma, beta, epsilon)


def _normalised(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float, *, axis=-1, correction: int = 0) -> Tensor:
    variance, mean = torch.var_mean(x, dim=axis, keepdim=True, correction=correction)
    return gamma * (x - mean) / (variance + epsilon).sqrt() + beta


@as_cases
def _norm_cases(rng: np.random.Generator) -> list:
    ones, zeros = torch.ones(5), torch.zeros(5)
    return [
        (torch.tensor([[1.0, 3.0], [2.0, 6.0]]), torch.ones(2), torch.zeros(2), 1e-5),
        (torch.tensor([[1.0, 3.0], [5.0, 6.0]]), torch.tensor([2.0, 1.0]), torch.tensor([0.0, 10.0]), 1e-5),
        (torch.tensor([[1.0, 1.0, 1.0], [0.0, 1.0, 5.0]]), torch.ones(3), torch.zeros(3), 1e-5),
        (normal(rng, 4, 5), ones, zeros, 0.5),
        (normal(rng, 2, 3, 5, scale=3.0) + 2, normal(rng, 5), normal(rng, 5), 1e-5),
        (normal(rng, 3, 2, 4, 5, scale=0.01), ones, zeros, 1e-3),
    ]


layer_norm = Exercise(
    name="layer_norm",
    title="Layer norm, over the right axis",
    notebook=NOTEBOOK,
    section="Layer norm keeps the scale",
    difficulty="easy",
    minutes=10,
    oracle=_layer_norm,
    cases=_norm_cases,
    covered="single sequences, batches and heads, a token of equal numbers, large and small scales, and a large "
    "epsilon. The unbiased variance is off by D/(D-1): too little to notice, and enough to disagree with every "
    "published checkpoint",
    mistakes=(
        Mistake(
            "the variance is the unbiased one",
            lambda x, g, b, e: _normalised(x, g, b, e, correction=1),
            "Your variance divides by D - 1. Layer norm estimates nothing about a population: by what does it divide? "
            "See what `torch.var` does if you say nothing.",
        ),
        Mistake(
            "the statistics are those of a dimension, not of a token",
            lambda x, g, b, e: _normalised(x, g, b, e, axis=-2),
            "You normalise each dimension over the tokens, which is closer to batch norm. May the result for one "
            "token depend on the others?",
        ),
        Mistake(
            "the statistics run over axis 1 whatever the rank",
            lambda x, g, b, e: _normalised(x, g, b, e, axis=1),
            "A single sequence comes out right, and a batch does not. Where does D stand when the rank is not known?",
        ),
        Mistake(
            "the axis of the statistics is lost",
            lambda x, g, b, e: g * (x - x.mean(-1)) / (x.var(-1, correction=0) + e).sqrt() + b,
            "A mean over the last axis has one axis fewer, and is then lined up with the wrong one, if the sizes "
            "happen to fit. How do you keep it?",
        ),
        Mistake(
            "the statistics are those of a whole sequence",
            lambda x, g, b, e: _normalised(x, g, b, e, axis=(-2, -1)),
            "All tokens of a sequence share one mean and one variance. May the result for one token depend on the "
            "others?",
        ),
        Mistake(
            "epsilon stands outside the root",
            lambda x, g, b, e: g * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + e) + b,
            "With a large epsilon your result is off. Is it added to the variance or to its root?",
        ),
        Mistake(
            "epsilon is forgotten",
            lambda x, g, b, e: _normalised(x, g, b, 0.0),
            "A token whose numbers are all equal gives NaN. What is the job of the small number below the root?",
        ),
        Mistake(
            "divided by the variance, not by its root",
            lambda x, g, b, e: g * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + e) + b,
            "Your tokens do not end with variance 1. If you double the input, by how much does your divisor grow?",
        ),
        Mistake(
            "the learned scale and shift are left out",
            lambda x, g, b, e: F.layer_norm(x, [x.size(-1)], eps=e),
            "The tokens are normalised, and then something is to be learned about each dimension. What are gamma and "
            "beta for?",
        ),
        Mistake(
            "the mean is not taken away",
            lambda x, g, b, e: g * x / (x.var(-1, keepdim=True, correction=0) + e).sqrt() + b,
            "The scale of your tokens is right, and their mean is not 0.",
        ),
    ),
)


# ---- residual_step ---------------------------------------------------------------------------------------------------


def _residual_step(x: Tensor, part, norm, norm_first: bool) -> Tensor:
    return torch.add(x, part(norm(x))) if norm_first else norm(torch.add(x, part(x)))


def double(x: Tensor) -> Tensor:
    """A part simple enough for mental arithmetic."""
    return 2 * x


def plus_one(x: Tensor) -> Tensor:
    """In place of a norm, so that the order of things can be read off the result."""
    return x + 1


def attention_part(x: Tensor) -> Tensor:
    """Attention of tokens to each other, without weights of its own."""
    return (x @ x.mT).softmax(dim=-1) @ x


def feed_forward_part(x: Tensor) -> Tensor:
    """A layer with a ReLU, with fixed weights."""
    width = x.size(-1)
    return (x @ torch.linspace(-1, 1, width * width).view(width, width)).relu() + 0.5


def standardise(x: Tensor) -> Tensor:
    """A layer norm without a learned scale and shift."""
    return F.layer_norm(x, [x.size(-1)])


@as_cases
def _residual_cases(rng: np.random.Generator) -> list:
    by_heart = "the part doubles each number, and the norm adds 1 to it"
    return [
        Case((torch.tensor([[3.0]]), double, plus_one, True), note=by_heart),
        Case((torch.tensor([[3.0]]), double, plus_one, False), note=by_heart),
        (normal(rng, 4, 6), feed_forward_part, standardise, False),
        (normal(rng, 4, 6), feed_forward_part, standardise, True),
        (normal(rng, 2, 5, 3, scale=3.0) + 1, attention_part, standardise, True),
        (normal(rng, 2, 5, 3, scale=3.0) + 1, attention_part, standardise, False),
    ]


residual_step = Exercise(
    name="residual_step",
    title="Residual and norm, in both orders",
    notebook=NOTEBOOK,
    section="Layer norm keeps the scale",
    difficulty="medium",
    minutes=10,
    oracle=_residual_step,
    cases=_residual_cases,
    covered="both orders, with attention and with a feed-forward network as the part. Loading weights into the wrong "
    "order raises no error, and the model says nonsense",
    mistakes=(
        Mistake(
            "always post-norm",
            lambda x, part, norm, first: norm(x + part(x)),
            "You do the same whatever `norm_first` says. Where does the norm stand when it comes first?",
        ),
        Mistake(
            "always pre-norm",
            lambda x, part, norm, first: x + part(norm(x)),
            "You do the same whatever `norm_first` says. Where does the norm stand in the original paper?",
        ),
        Mistake(
            "the two orders have changed places",
            lambda x, part, norm, first: norm(x + part(x)) if first else x + part(norm(x)),
            "Each of your two formulas is right, and belongs to the other case. Which of them normalises *first*?",
        ),
        Mistake(
            "pre-norm adds to the normalised input",
            lambda x, part, norm, first: norm(x) + part(norm(x)) if first else norm(x + part(x)),
            "Post-norm is right. In pre-norm, what passes through the stack must stay untouched: what do you add to?",
        ),
        Mistake(
            "the residual is left out",
            lambda x, part, norm, first: part(norm(x)) if first else norm(part(x)),
            "Nothing of x itself reaches the output. What did the notebook measure after twelve such layers?",
        ),
        Mistake(
            "post-norm normalises before the sum",
            lambda x, part, norm, first: x + part(norm(x)) if first else x + norm(part(x)),
            "Pre-norm is right. In post-norm the sum is what has to keep its scale: what do you normalise?",
        ),
        Mistake(
            "the norm is left out",
            lambda x, part, norm, first: x + part(x),
            "Your result does not depend on the norm at all.",
        ),
    ),
)


# ---- sinusoids -------------------------------------------------------------------------------------------------------


def _sinusoids(length: int, width: int) -> Tensor:
    rows = []
    for position in range(length):
        row = []
        for dimension in range(width):
            pair = dimension // 2
            angle = position / 10000 ** (2 * pair / width)
            row.append(math.cos(angle) if dimension % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows)


def _waves(length: int, width: int, exponent: Tensor, *, first: int = 0, swapped: bool = False) -> Tensor:
    """Sines and cosines in turn, of angles with the exponent [ceil(width / 2)] given."""
    angle = torch.arange(first, first + length, dtype=torch.float64)[:, None] / 10000.0 ** exponent.double()
    sine, cosine = angle.sin(), angle.cos()
    both = torch.stack((cosine, sine) if swapped else (sine, cosine), dim=-1).flatten(1)
    return both[:, :width].float()


def _even(width: int) -> Tensor:
    return torch.arange(0, width, 2) / width


def _own_exponents(length: int, width: int) -> Tensor:
    dimension = torch.arange(width, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10000.0 ** (dimension / width)
    return torch.where(dimension % 2 == 0, angle.sin(), angle.cos()).float()


def _in_halves(length: int, width: int) -> Tensor:
    waves = _waves(length, width, _even(width))
    return torch.cat([waves[:, 0::2], waves[:, 1::2]], dim=1)


def _even_widths_only(length: int, width: int) -> Tensor:
    angle = torch.arange(length)[:, None] / 10000 ** _even(width)
    encoding = torch.zeros(length, width)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()
    return encoding


sinusoids = Exercise(
    name="sinusoids",
    title="The exponent of the sinusoids",
    notebook=NOTEBOOK,
    section="Positions",
    difficulty="medium",
    minutes=15,
    oracle=_sinusoids,
    cases=as_cases(lambda rng: [(1, 2), (2, 2), (2, 4), (3, 5), (4, 1), (40, 16)]),
    laws=(
        Law(
            "no number lies outside -1 to 1",
            lambda case, output: bool((torch.as_tensor(output).abs() <= 1 + 1e-4).all()),
        ),
    ),
    covered="even and odd widths, a single dimension, and one position. With a wrong exponent each position still has "
    "a code of its own, so that no error and no shape gives it away",
    mistakes=(
        Mistake(
            "the exponent is doubled",
            lambda length, width: _waves(length, width, 2 * _even(width)),
            "Your waves slow down too fast. If you step through the dimensions by twos, you have 2i already.",
        ),
        Mistake(
            "the exponent is halved",
            lambda length, width: _waves(length, width, _even(width) / 2),
            "Your waves slow down too little. Does the exponent count pairs or dimensions?",
        ),
        Mistake(
            "an odd width does not fit",
            _even_widths_only,
            "Even widths come out right. In an odd width, how many dimensions hold sines, and how many hold cosines?",
        ),
        Mistake(
            "a sine and its cosine have different angles",
            _own_exponents,
            "Each dimension has an exponent of its own. A pair is the hand of one clock: what do its two numbers "
            "share?",
        ),
        Mistake(
            "all sines first, then all cosines",
            _in_halves,
            "The numbers are right and stand in other places. Which dimensions hold sines: the first half, or the "
            "even ones?",
        ),
        Mistake(
            "sine and cosine have changed places",
            lambda length, width: _waves(length, width, _even(width), swapped=True),
            "At position 0 your first number is 1. What is the sine of 0?",
        ),
        Mistake(
            "the positions count from 1",
            lambda length, width: _waves(length, width, _even(width), first=1),
            "Your first row is the second one of the formula. What is the first position?",
        ),
        Mistake(
            "the angle is multiplied, not divided",
            lambda length, width: _waves(length, width, -_even(width)),
            "Your later pairs spin faster and faster. Which pair is to be the slowest?",
        ),
        Mistake(
            "the exponent reaches 1 at the last pair",
            lambda length, width: _waves(length, width, torch.linspace(0, 1, (width + 1) // 2, dtype=torch.float64)),
            "You spread the exponents evenly from 0 to 1. The formula's last exponent, at 2i = D - 2, is a little "
            "less.",
        ),
    ),
)


# ---- rotation --------------------------------------------------------------------------------------------------------


def _rotation(offset: int, width: int) -> Tensor:
    matrix = np.zeros((width, width))
    for pair in range(width // 2):
        turn = np.exp(1j * offset / 10000 ** (2 * pair / width))
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [[turn.real, turn.imag], [-turn.imag, turn.real]]
    return torch.from_numpy(matrix).float()


def _rotation_in_halves(offset: int, width: int) -> Tensor:
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    return _rotation(offset, width)[order][:, order]


def _rotation_by(exponents: float):
    def wrong(offset: int, width: int) -> Tensor:
        angle = offset / 10000.0 ** (exponents * torch.arange(width // 2, dtype=torch.float64) / width)
        blocks = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], dim=-1).view(-1, 2, 2)
        return torch.block_diag(*blocks).float()

    return wrong


def _keeps_lengths(case: Case, matrix: Tensor) -> bool:
    matrix = torch.as_tensor(matrix).float()
    return torch.allclose(matrix.T @ matrix, torch.eye(len(matrix)), atol=1e-4)


rotation = Exercise(
    name="rotation",
    title="A shift by k positions is a rotation",
    notebook=NOTEBOOK,
    section="Positions",
    difficulty="hard",
    minutes=20,
    oracle=_rotation,
    cases=as_cases(lambda rng: [(1, 2), (0, 2), (2, 4), (5, 6), (-3, 8), (17, 16)]),
    laws=(Law("it keeps the length of every vector", _keeps_lengths),),
    covered="forward, backward and no shift, widths from 2 to 16. One fixed matrix moves any position by k: that is "
    "what a layer can learn once and use everywhere, and what rotary positions are built on",
    mistakes=(
        Mistake(
            "it turns backwards",
            lambda offset, width: _rotation(-offset, width),
            "Your matrix leads from p to p - k, or it is made for rows on its left. Try it by hand on the sine and "
            "cosine of position 0.",
        ),
        Mistake(
            "it turns by one position whatever the offset",
            lambda offset, width: _rotation(1, width),
            "Your matrix does not depend on k. By which angle does a hand turn in k steps?",
        ),
        Mistake(
            "it is made for all sines first, then all cosines",
            _rotation_in_halves,
            "Your sines fill the first half. In this course, where does the cosine of a sine stand?",
        ),
        Mistake(
            "the exponent is halved",
            _rotation_by(1.0),
            "The first pair turns rightly and the others too fast. Does the exponent count pairs or dimensions?",
        ),
        Mistake(
            "the exponent is doubled",
            _rotation_by(4.0),
            "The first pair turns rightly and the others too slowly. Does the exponent count pairs or dimensions?",
        ),
        Mistake(
            "it mirrors and does not turn",
            lambda offset, width: (
                _rotation(offset, width) * torch.tensor([1.0, 1.0, -1.0, 1.0]).view(2, 2).repeat(width // 2, width // 2)
            ),
            "Both off-diagonal numbers of a block have the same sign. What is cos(a + b), and where is its minus?",
        ),
        Mistake(
            "all pairs turn equally fast",
            _rotation_by(0.0),
            "Every pair turns by the same angle. What makes the hands of the clock differ?",
        ),
    ),
)


# ---- warmup_factor ---------------------------------------------------------------------------------------------------


def _warmup_factor(step: int, warmup: int, max_iters: int) -> float:
    climb = np.clip(step / warmup, 0.0, 1.0) if warmup else 1.0
    decay = 0.5 + 0.5 * np.cos(np.pi * min(step, max_iters) / max_iters)
    return float(climb * decay)


def _cosine(step: float, max_iters: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * step / max_iters))


def _cosine_after_warmup(step: int, warmup: int, max_iters: int) -> float:
    if step >= max_iters:
        return 0.0
    return step / warmup if step < warmup else _cosine(step - warmup, max_iters - warmup)


warmup_factor = Exercise(
    name="warmup_factor",
    title="Warm-up, at its edges",
    notebook=NOTEBOOK,
    section="Warm-up and cosine decay",
    difficulty="medium",
    minutes=15,
    oracle=_warmup_factor,
    cases=as_cases(
        lambda rng: [
            (0, 10, 100),
            (1, 10, 100),
            (9, 10, 100),
            (10, 10, 100),
            (50, 10, 100),
            (99, 10, 100),
            (100, 10, 100),
            (150, 10, 100),
            (200, 10, 100),
            (0, 0, 100),
            (5, 0, 8),
            (1, 1, 3),
            (4, 20, 8),
            (730, 200, 2000),
        ]
    ),
    covered="the first step, the last of the warm-up, the end and beyond it, no warm-up, and a warm-up that is longer "
    "than the run. These edges are where schedules break, and a run of one length never shows them all",
    mistakes=(
        Mistake(
            "no warm-up divides by zero",
            lambda step, warmup, m: 0.0 if step >= m else min(1.0, step / warmup) * _cosine(step, m),
            "With warmup = 0 you divide by it. What is the factor of a warm-up that is over before it begins?",
        ),
        Mistake(
            "no warm-up gives nothing at step 0",
            lambda step, warmup, m: 0.0 if step >= m else min(1.0, step / max(1, warmup)) * _cosine(step, m),
            "With warmup = 0 your first step has a rate of 0. You avoid the division by zero; what should the factor "
            "be?",
        ),
        Mistake(
            "the rate climbs again after the end",
            lambda step, warmup, m: (min(1.0, step / warmup) if warmup else 1.0) * _cosine(step, m),
            "Past max_iters your cosine comes up again. Where should the rate stay?",
        ),
        Mistake(
            "the warm-up starts one step ahead",
            lambda step, warmup, m: (
                0.0 if step >= m else (min(1.0, (step + 1) / warmup) if warmup else 1.0) * _cosine(step, m)
            ),
            "Your factor at step 0 is not 0. Some schedules begin so; what does the formula say for s = 0?",
        ),
        Mistake(
            "the cosine begins after the warm-up",
            _cosine_after_warmup,
            "Your cosine starts when the warm-up ends. That is a common schedule, but another one: what does s count "
            "from in this formula?",
        ),
        Mistake(
            "the warm-up leaves the cosine out",
            lambda step, warmup, m: 0.0 if step >= m else step / warmup if step < warmup else _cosine(step, m),
            "During the warm-up your factor is a straight line. In the formula two factors are multiplied at every "
            "step.",
        ),
        Mistake(
            "the warm-up goes on climbing",
            lambda step, warmup, m: 0.0 if step >= m else (step / warmup if warmup else 1.0) * _cosine(step, m),
            "After the warm-up your factor is above 1. What holds it there in the formula?",
        ),
        Mistake(
            "the cosine is not halved",
            lambda step, warmup, m: 2 * _warmup_factor(step, warmup, m),
            "Your factor is twice too large. Between which numbers does 1 + cos lie?",
        ),
        Mistake(
            "the rate does not decay",
            lambda step, warmup, m: 0.0 if step >= m else (min(1.0, step / warmup) if warmup else 1.0),
            "Your factor stays at 1 after the warm-up and then drops. What does the second part of the product do?",
        ),
        Mistake(
            "there is no warm-up",
            lambda step, warmup, m: _warmup_factor(step, 0, m),
            "Your factor starts at 1, whatever `warmup` says.",
        ),
    ),
)


# ---- block_parameters ------------------------------------------------------------------------------------------------


def _block_parameters(width: int, hidden: int) -> int:
    """PyTorch's own layer, counted; on the meta device no memory is taken."""
    layer = nn.TransformerEncoderLayer(width, 1, hidden, device="meta")
    return sum(parameter.numel() for parameter in layer.parameters())


block_parameters = Exercise(
    name="block_parameters",
    title="How many numbers does a block learn?",
    notebook=NOTEBOOK,
    section="The feed-forward network thinks about one token at a time",
    difficulty="medium",
    minutes=10,
    oracle=_block_parameters,
    cases=as_cases(lambda rng: [(1, 1), (2, 3), (4, 16), (32, 64), (64, 128), (512, 2048)]),
    covered="widths from 1 to 512, compared with PyTorch's own layer, counted. At the usual sizes the feed-forward "
    "network holds two thirds of a block, not attention",
    mistakes=(
        Mistake(
            "the biases are forgotten",
            lambda d, h: 4 * d * d + 2 * d * h + 4 * d,
            "You count every matrix. A linear layer adds something to each of its outputs as well.",
        ),
        Mistake(
            "the layer norms are forgotten",
            lambda d, h: 4 * d * d + 4 * d + 2 * d * h + d + h,
            "You are short by a small multiple of the width, and it is not a linear layer. What else in the block "
            "learns?",
        ),
        Mistake(
            "the norms are half counted",
            lambda d, h: 4 * d * d + 4 * d + 2 * d * h + d + h + 2 * d,
            "You are short by twice the width, and norms are the reason. How many are there, and what does each learn "
            "for a dimension?",
        ),
        Mistake(
            "the projection of the output is forgotten",
            lambda d, h: 3 * d * d + 3 * d + 2 * d * h + d + h + 4 * d,
            "You count queries, keys and values. What happens to the heads after they stand side by side?",
        ),
        Mistake(
            "only the weight matrices",
            lambda d, h: 4 * d * d + 2 * d * h,
            "You count every matrix. Which vectors are learned as well?",
        ),
        Mistake(
            "the feed-forward network has one matrix",
            lambda d, h: 4 * d * d + 4 * d + d * h + h + 4 * d,
            "Your tokens become wider, and stay so. How do they get back to their width?",
        ),
    ),
)


# ---- stepped_each_epoch ----------------------------------------------------------------------------------------------


stepped_each_epoch = Choice(
    name="stepped_each_epoch",
    title="A schedule that never leaves the ground",
    notebook=NOTEBOOK,
    section="The same as a Lightning module",
    difficulty="easy",
    minutes=3,
    options={
        "a": Option(
            False,
            "A rate that is too high would throw the loss about. Here the loss does not move at all: which rate does "
            "nothing whatever?",
        ),
        "b": Option(
            True,
            "The factor is that of step 0 for the whole of the only epoch, and with warm-up that is 0. The optimizer "
            "steps and moves nothing.",
        ),
        "c": Option(
            False,
            "A schedule that decays too early leaves a model that has learned something first. This accuracy is that "
            "of a model which has learned nothing.",
        ),
        "d": Option(
            False,
            "Lightning steps the optimizer after every batch in both runs; only the schedule's interval is another. "
            "What does the optimizer multiply its step by?",
        ),
    },
)


when_warmup_matters = Choice(
    name="when_warmup_matters",
    title="When warm-up matters",
    notebook=NOTEBOOK,
    section="Does warm-up prevent divergence?",
    difficulty="medium",
    minutes=5,
    options={
        "a": Option(
            False,
            "Look at the panels with one layer, and at those with the lowest rate. Is a run without warm-up stuck "
            "there?",
        ),
        "b": Option(
            False,
            "Look at the panel with twelve layers and the middle rate. Do both arms end at the same loss there?",
        ),
        "c": Option(
            False,
            "Go through the table at twelve layers. At which rates are post-norm runs without warm-up stuck, and at "
            "which rates pre-norm ones?",
        ),
        "d": Option(
            True,
            "Depth, rate and the place of the norm decide together. That is why both can be heard, that warm-up is "
            "crucial and that it makes no difference: those who say so have measured other settings.",
        ),
    },
)
