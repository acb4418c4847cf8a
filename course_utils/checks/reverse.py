"""The exercises of notebook 03: the loss, clipping, whole sequences, and how to read an attention map."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.checks.exercise import Choice, Exercise, Law, Mistake, Option, Quantity, WrongValue
from course_utils.checks.inputs import as_cases, normal

NOTEBOOK = "03_reverse_task"


# ---- token_loss ------------------------------------------------------------------------------------------------------


def _token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.CrossEntropyLoss()(torch.movedim(logits, -1, 1), targets)


def _surprise(logits: Tensor, targets: Tensor) -> Tensor:
    """Minus the logarithm of each target's probability, [B, T]."""
    return -logits.log_softmax(dim=-1).gather(-1, targets[..., None])[..., 0]


@as_cases
def _loss_cases(rng: np.random.Generator) -> list:
    def targets(batch: int, length: int, classes: int) -> Tensor:
        return torch.from_numpy(rng.integers(classes, size=(batch, length)))

    return [
        (torch.tensor([[[0.0, math.log(3.0)]]]), torch.tensor([[1]])),
        (torch.tensor([[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]]), torch.tensor([[1, 2]])),
        (normal(rng, 2, 3, 3), targets(2, 3, 3)),
        (normal(rng, 4, 3, 7, scale=3.0), targets(4, 3, 7)),
        (normal(rng, 3, 16, 10), targets(3, 16, 10)),
        (torch.tensor([[[2000.0, 0.0], [0.0, 0.0]]]), torch.tensor([[1, 0]])),
    ]


token_loss = Exercise(
    name="token_loss",
    title="The loss of a digit",
    notebook=NOTEBOOK,
    section="The predictor",
    difficulty="easy",
    minutes=10,
    oracle=_token_loss,
    cases=_loss_cases,
    covered="one digit, short and long sequences, 2 to 10 classes, and a model that is sure and wrong. A loss that "
    "takes the softmax twice still falls, only ever more slowly, and nobody is told",
    mistakes=(
        Mistake(
            "a softmax is taken before the cross-entropy",
            lambda logits, targets: _token_loss(logits.softmax(dim=-1), targets),
            "Your loss hardly falls where the model is sure and right. What does PyTorch's cross-entropy do to its "
            "input first?",
        ),
        Mistake(
            "positions and classes are mixed up",
            lambda logits, targets: F.cross_entropy(
                logits.reshape(logits.size(0), logits.size(2), logits.size(1)), targets
            ),
            "Cross-entropy wants the classes on axis 1. A reshape gives the right shape and mixes the numbers; what "
            "changes the order of axes?",
        ),
        Mistake(
            "the classes do not stand on axis 1",
            F.cross_entropy,
            "PyTorch's cross-entropy reads your positions as classes, if it does not refuse. Where does it want the "
            "classes?",
        ),
        Mistake(
            "the losses are added up",
            lambda logits, targets: _surprise(logits, targets).sum(),
            "Your loss grows with the number of digits. The task asks for nats a digit.",
        ),
        Mistake(
            "the mean is over sequences, the sum over positions",
            lambda logits, targets: _surprise(logits, targets).sum(dim=1).mean(),
            "Your loss grows with the length of the sequence. The task asks for nats a digit.",
        ),
        Mistake(
            "the targets are reversed once more",
            lambda logits, targets: _token_loss(logits, targets.flip(-1)),
            "You turn the targets round. They are what the data set gives: what has it done to them already?",
        ),
        Mistake(
            "the sign is missing",
            lambda logits, targets: -_token_loss(logits, targets),
            "Your loss is negative, and better predictions make it larger.",
        ),
        Mistake(
            "one minus the probability",
            lambda logits, targets: 1 - (-_surprise(logits, targets)).exp().mean(),
            "Your loss never exceeds 1, however sure and wrong the model is. Which function of the probability does?",
        ),
        Mistake(
            "the logarithm of a probability of 0",
            lambda logits, targets: -logits.softmax(dim=-1).gather(-1, targets[..., None]).log().mean(),
            "A model that is very sure and wrong gives an infinite loss. Can you take softmax and logarithm in one "
            "step?",
        ),
    ),
)


# ---- weight_on_mirrored ----------------------------------------------------------------------------------------------


def _weight_on_mirrored(attention: Tensor) -> float:
    length = attention.size(-1)
    maps = attention.double().numpy().reshape(-1, length, length)
    return float(np.mean([one[query, length - 1 - query] for one in maps for query in range(length)]))


def _maps(rng: np.random.Generator, *shape: int) -> Tensor:
    return normal(rng, *shape, scale=2.0).softmax(dim=-1)


def _mirrored(length: int) -> Tensor:
    return torch.eye(length).flip(-1)


@as_cases
def _map_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[0.2, 0.8], [0.7, 0.3]]),),
        (_mirrored(3),),
        (torch.tensor([[0.1, 0.2, 0.7], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]),),
        (_maps(rng, 4, 4),),
        (_maps(rng, 2, 5, 5),),
        (_maps(rng, 3, 2, 7, 7),),
        (0.5 * _mirrored(6) + 0.5 * _maps(rng, 2, 1, 6, 6),),
    ]


weight_on_mirrored = Exercise(
    name="weight_on_mirrored",
    title="Reading an attention map",
    notebook=NOTEBOOK,
    section="Where the model looks",
    difficulty="medium",
    minutes=10,
    oracle=_weight_on_mirrored,
    cases=_map_cases,
    covered="single maps, batches, heads, and lengths from 2 to 7. A number over all sequences is worth more than the "
    "one map that looks best",
    mistakes=(
        Mistake(
            "the main diagonal",
            lambda attention: attention.diagonal(dim1=-2, dim2=-1).mean().item(),
            "You measure how much each query looks at itself (a map that is flipped along both axes still has its "
            "main diagonal). At which key does query p find its answer?",
        ),
        Mistake(
            "off by one",
            lambda attention: attention.roll(1, dims=-1).flip(-1).diagonal(dim1=-2, dim2=-1).mean().item(),
            "Your query p looks one place beside its answer. Where does the answer of query 0 stand in a sequence of "
            "length T?",
        ),
        Mistake(
            "the sum over the queries",
            lambda attention: attention.flip(-1).diagonal(dim1=-2, dim2=-1).sum(dim=-1).mean().item(),
            "A perfect map gives T, and should give 1. The task asks for the weight of a query, not of a map.",
        ),
        Mistake(
            "the largest weight of each row",
            lambda attention: attention.amax(dim=-1).mean().item(),
            "You measure how sure the queries are, and not where they look.",
        ),
        Mistake(
            "how often the mirrored weight is the largest",
            lambda attention: (
                (attention.argmax(dim=-1) == torch.arange(attention.size(-1) - 1, -1, -1)).float().mean().item()
            ),
            "You count the queries that look there most. That is worth knowing, and it is another number: how *much* "
            "of their weight lies there?",
        ),
        Mistake(
            "the mean over the whole map",
            lambda attention: attention.mean().item(),
            "Your number is 1/T whatever the map looks like. Which entries count?",
        ),
    ),
)


# ---- clip_by_norm ----------------------------------------------------------------------------------------------------


def _clip_by_norm(gradients: list[Tensor], limit: float) -> list[Tensor]:
    length = math.sqrt(sum(float((gradient.double() ** 2).sum()) for gradient in gradients))
    return [gradient * (limit / length) if length > limit else gradient.clone() for gradient in gradients]


def _length(gradients: list[Tensor]) -> Tensor:
    return torch.linalg.vector_norm(torch.cat([gradient.flatten() for gradient in gradients]))


@as_cases
def _clip_cases(rng: np.random.Generator) -> list:
    return [
        ([torch.tensor([3.0, 4.0])], 1.0),
        ([torch.tensor([3.0, 4.0])], 10.0),
        ([torch.tensor([3.0]), torch.tensor([[4.0]])], 1.0),
        ([torch.tensor([0.0, 0.0]), torch.tensor([0.0])], 2.0),
        ([normal(rng, 3, 4), normal(rng, 4), normal(rng, 2, 2, 2)], 0.5),
        ([normal(rng, 3, 4), 5 * normal(rng, 5), 0.01 * normal(rng, 2)], 5.0),
        ([0.1 * normal(rng, 6), 0.1 * normal(rng, 2, 3)], 5.0),
    ]


clip_by_norm = Exercise(
    name="clip_by_norm",
    title="Clipping the gradient",
    notebook=NOTEBOOK,
    section="Training from nothing",
    difficulty="medium",
    minutes=15,
    oracle=_clip_by_norm,
    cases=_clip_cases,
    laws=(
        Law(
            "all gradients together are no longer than the limit",
            lambda case, output: float(_length([torch.as_tensor(g) for g in output])) <= case.arguments[1] * 1.001,
        ),
    ),
    covered="one gradient and several of different shapes, above and below the limit, and gradients of 0. One factor "
    "for all of them keeps the direction of the step; anything else walks somewhere else",
    mistakes=(
        Mistake(
            "each gradient is clipped on its own",
            lambda gradients, limit: [part for gradient in gradients for part in _clip_by_norm([gradient], limit)],
            "Each tensor has its own factor, so that the step points in another direction. Whose length is limited?",
        ),
        Mistake(
            "the numbers are clipped, not the norm",
            lambda gradients, limit: [gradient.clamp(-limit, limit) for gradient in gradients],
            "You cut off single numbers, and the direction changes. What does one factor for all numbers keep?",
        ),
        Mistake(
            "short gradients are made longer",
            lambda gradients, limit: [gradient * limit / _length(gradients).clamp(min=1e-30) for gradient in gradients],
            "All your gradients end with the same length. What is to happen to one that is short already?",
        ),
        Mistake(
            "short gradients are made longer",
            lambda gradients, limit: [gradient * limit / _length(gradients) for gradient in gradients],  # 0 becomes NaN
            "All your gradients end with the same length. What is to happen to one that is short already?",
        ),
        Mistake(
            "the root of the norm is forgotten",
            lambda gradients, limit: [
                gradient * min(1.0, limit / max(float(_length(gradients) ** 2), 1e-30)) for gradient in gradients
            ],
            "Your gradients get shorter than the limit. Do you divide by the norm or by its square?",
        ),
        Mistake(
            "the norm is a sum of absolute values",
            lambda gradients, limit: [
                gradient * min(1.0, limit / max(sum(float(g.abs().sum()) for g in gradients), 1e-30))
                for gradient in gradients
            ],
            "Your gradient [3, 4] has length 7. How long is the way along the diagonal?",
        ),
        Mistake(
            "the norms of the parts are added up",
            lambda gradients, limit: [
                gradient * min(1.0, limit / max(sum(float(g.norm()) for g in gradients), 1e-30))
                for gradient in gradients
            ],
            "You add up lengths. The parts are the sides of one long vector: how do lengths at right angles combine?",
        ),
        Mistake(
            "nothing is clipped",
            lambda gradients, limit: list(gradients),
            "Your gradients leave as they came, whatever the limit.",
        ),
    ),
)


# ---- a number and a choice -------------------------------------------------------------------------------------------


whole_sequences = Quantity(
    name="whole_sequences",
    title="Digits right and sequences right",
    notebook=NOTEBOOK,
    section="The predictor",
    difficulty="easy",
    minutes=5,
    expected=0.99**16,
    rtol=5e-3,
    covered="16 digits that are right independently of each other. An accuracy of single digits flatters: ask of "
    "every number what it counts",
    wrong_values=(
        WrongValue(
            "as often as a digit",
            0.99,
            "That is the share of digits. A sequence with a single wrong digit is wrong: how many chances has it to "
            "be so?",
        ),
        WrongValue(
            "sixteen times the error",
            1 - 16 * 0.01,
            "You add up sixteen errors of 1 %, which is close, and counts a sequence with two errors twice. How do "
            "probabilities of independent events combine?",
        ),
        WrongValue(
            "the sequences that are wrong",
            1 - 0.99**16,
            "That is the share of sequences with at least one error. What was asked for?",
        ),
        WrongValue(
            "fifteen digits",
            0.99**15,
            "You multiply once too little. How many digits have to be right?",
        ),
        WrongValue(
            "in per cent",
            100 * 0.99**16,
            "The number is right in per cent: the task asks for a share between 0 and 1.",
        ),
    ),
)


one_direction_ceiling = Quantity(
    name="one_direction_ceiling",
    title="What cannot be known yet",
    notebook=NOTEBOOK,
    section="A ceiling that has nothing to do with memory",
    difficulty="medium",
    minutes=10,
    expected=(8 + 7 / 5) / 15,
    rtol=5e-3,
    covered="15 digits, of 5 kinds. Know what the best possible answer is before you call a model bad",
    wrong_values=(
        WrongValue(
            "the formula for even lengths",
            0.5 * (1 + 1 / 5),
            "The notebook's formula is for even T, where half the answers have been read. Which digit stands in the "
            "middle of 15, and has it been read when it is asked for?",
        ),
        WrongValue(
            "the middle one is guessed",
            (7 + 8 / 5) / 15,
            "You let the network guess the middle digit. Where does its answer stand, and has that been read?",
        ),
        WrongValue(
            "guesses are never right",
            8 / 15,
            "That is the share of answers that have been read. And how often is a guess among 5 digits right?",
        ),
        WrongValue(
            "ten kinds of digits",
            (8 + 7 / 10) / 15,
            "You guess among 10 digits, as in the notebook. How many kinds are there here?",
        ),
        WrongValue(
            "a count, not a share",
            8 + 7 / 5,
            "That is how many digits of a sequence are right on average. The task asks for a share.",
        ),
    ),
)


spread_weight = Choice(
    name="spread_weight",
    title="Right, and not looking only there",
    notebook=NOTEBOOK,
    section="Where the model looks",
    difficulty="medium",
    minutes=5,
    options={
        "a": Option(
            False,
            "Then digits would be wrong, and the test accuracy says that next to none is. A weight that is not 1 is "
            "no probability of being right.",
        ),
        "b": Option(
            False,
            "There is one layer and one head, so whatever a query learns of other places has passed through this very "
            "map.",
        ),
        "c": Option(
            False,
            "A row of weights sums to 1 by itself, and padding there is none: every sequence has the full length. "
            "Where in the map does the rest of the weight lie?",
        ),
        "d": Option(
            True,
            "The output network only has to tell which digit has the largest share of the sum. Neighbouring places "
            "have similar encodings and get some weight, and that is not enough to tip the balance.",
        ),
    },
)
