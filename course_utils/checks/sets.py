"""The exercises of notebook 04: a softmax over a set, a rule without learning, and what positions do to a set."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.checks.exercise import Choice, Exercise, Mistake, Option, Quantity, WrongValue
from course_utils.checks.inputs import as_cases, normal

NOTEBOOK = "04_set_anomaly"


# ---- odd_one_loss ----------------------------------------------------------------------------------------------------


def _odd_one_loss(scores: Tensor, positions: Tensor) -> Tensor:
    rows = scores.double().numpy()
    highest = rows.max(axis=1)
    log_sums = highest + np.log(np.exp(rows - highest[:, None]).sum(axis=1))
    return torch.tensor(np.mean(log_sums - rows[np.arange(len(rows)), positions.numpy()])).float()


def _log_probability(scores: Tensor, positions: Tensor, axis: int) -> Tensor:
    return scores.log_softmax(dim=axis)[torch.arange(len(scores)), positions]


@as_cases
def _odd_cases(rng: np.random.Generator) -> list:
    return [
        (torch.tensor([[0.0, math.log(3.0)]]), torch.tensor([1])),
        (torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([0])),
        (torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]]), torch.tensor([2, 1])),
        (normal(rng, 4, 4), torch.tensor([3, 0, 2, 1])),
        (normal(rng, 3, 10, scale=3.0), torch.tensor([9, 9, 0])),
        (normal(rng, 7, 5), torch.from_numpy(rng.integers(5, size=7))),
        (torch.tensor([[2000.0, 0.0, 0.0]]), torch.tensor([2])),
    ]


odd_one_loss = Exercise(
    name="odd_one_loss",
    title="The loss of the odd one",
    notebook=NOTEBOOK,
    section="The predictor",
    difficulty="medium",
    minutes=10,
    oracle=_odd_one_loss,
    cases=_odd_cases,
    covered="sets of 2 to 10, one set and several, and a model that is sure and wrong. Because the scores of a set "
    "compete, the same model works for sets of any size",
    mistakes=(
        Mistake(
            "the softmax runs over the batch",
            lambda scores, positions: -_log_probability(scores, positions, 0).mean(),
            "Images of different sets compete with each other. Among which images is exactly one the odd one?",
        ),
        Mistake(
            "each image is judged on its own",
            lambda scores, positions: F.binary_cross_entropy_with_logits(
                scores, F.one_hot(positions, scores.size(1)).float()
            ),
            "You ask of each image whether it is odd, as if there could be none or five. What do you know about each "
            "set?",
        ),
        Mistake(
            "a softmax is taken before the cross-entropy",
            lambda scores, positions: F.cross_entropy(scores.softmax(dim=-1), positions),
            "Your loss hardly falls where the model is sure and right. What does PyTorch's cross-entropy do to its "
            "input first?",
        ),
        Mistake(
            "the losses are added up",
            lambda scores, positions: -_log_probability(scores, positions, 1).sum(),
            "Your loss grows with the number of sets in the batch. The task asks for nats a set.",
        ),
        Mistake(
            "the odd one is the least likely",
            lambda scores, positions: _odd_one_loss(-scores, positions),
            "You push the score of the odd one down. What does a high score mean in this notebook?",
        ),
        Mistake(
            "the last image is always the odd one",
            lambda scores, positions: _odd_one_loss(scores, torch.full_like(positions, scores.size(1) - 1)),
            "You read the last column whatever the position says. The data set puts the odd one there; may the loss "
            "know it?",
        ),
        Mistake(
            "the probability, not its logarithm",
            lambda scores, positions: -_log_probability(scores, positions, 1).exp().mean(),
            "Your loss is never below -1 and hardly punishes being sure and wrong. Which function of the probability "
            "does?",
        ),
        Mistake(
            "the logarithm of a probability of 0",
            lambda scores, positions: -(scores.softmax(dim=1)[torch.arange(len(scores)), positions]).log().mean(),
            "A model that is very sure and wrong gives an infinite loss. Can you take softmax and logarithm in one "
            "step?",
        ),
        Mistake(
            "the sign is missing",
            lambda scores, positions: -_odd_one_loss(scores, positions),
            "Your loss is negative, and better predictions make it larger.",
        ),
    ),
)


# ---- least_similar ---------------------------------------------------------------------------------------------------


def _least_similar(sets: Tensor, centre: Tensor) -> Tensor:
    found = []
    for images in (sets - centre).double().numpy():
        unit = images / np.linalg.norm(images, axis=1, keepdims=True)
        to_others = [sum(float(a @ b) for j, b in enumerate(unit) if j != i) for i, a in enumerate(unit)]
        found.append(int(np.argmin(to_others)))
    return torch.tensor(found)


def _similarity(sets: Tensor, *, normalise: bool = True) -> Tensor:
    direction = F.normalize(sets, dim=-1) if normalise else sets
    return direction @ direction.mT


@as_cases
def _set_cases(rng: np.random.Generator) -> list:
    zero = torch.zeros(2)
    fan = torch.tensor([[[1.0, 0.0], [5.0, 0.0], [0.0, 1.0]]])  # two directions, one long and one short
    long_odd = torch.tensor([[[1.0, 0.2], [1.0, 0.0], [4.0, 6.0], [1.0, 0.1]]])
    shifted = torch.tensor([[[11.0, 10.0], [12.0, 10.0], [10.0, 13.0], [11.0, 10.1]]])

    def random_sets(number: int, size: int, width: int) -> Tensor:
        classes = normal(rng, number, 2, width)
        sets = classes[:, :1] + 0.5 * normal(rng, number, size, width)
        odd = torch.from_numpy(rng.integers(size, size=number))
        sets[torch.arange(number), odd] += classes[:, 1] - classes[:, 0]
        return sets * torch.from_numpy(rng.uniform(0.3, 3.0, size=(number, size, 1))).float()

    return [
        (fan, zero),
        (long_odd, zero),
        (shifted, torch.tensor([10.0, 10.0])),
        (random_sets(8, 5, 3), torch.zeros(3)),
        (random_sets(20, 10, 6) + 4.0, 4.0 + 0.5 * normal(rng, 6)),
        (random_sets(12, 3, 4), 0.3 * normal(rng, 4)),
    ]


least_similar = Exercise(
    name="least_similar",
    title="The odd one without learning",
    notebook=NOTEBOOK,
    section="A simple rule to beat",
    difficulty="medium",
    minutes=15,
    oracle=_least_similar,
    cases=_set_cases,
    covered="sets of 3 to 10, long and short vectors, and centres other than 0. A model that does not beat such a "
    "rule has learned nothing worth its training",
    mistakes=(
        Mistake(
            "the most similar one",
            lambda sets, centre: _similarity(sets - centre).sum(dim=-1).argmax(dim=-1),
            "You find the image that is most like the others.",
        ),
        Mistake(
            "the length of the vectors counts",
            lambda sets, centre: _similarity(sets - centre, normalise=False).sum(dim=-1).argmin(dim=-1),
            "A short vector looks unlike everything to you. What does the cosine of an angle not depend on?",
        ),
        Mistake(
            "the centre is ignored",
            lambda sets, centre: _similarity(sets).sum(dim=-1).argmin(dim=-1),
            "You look from 0 whatever the centre. From far away, all images lie in much the same direction.",
        ),
        Mistake(
            "the centre is taken away after normalising",
            lambda sets, centre: ((u := F.normalize(sets, dim=-1) - centre) @ u.mT).sum(dim=-1).argmin(dim=-1),
            "You measure the lengths from 0 and the directions from elsewhere. Which of the two steps comes first?",
        ),
        Mistake(
            "the centre is that of each set",
            lambda sets, centre: _similarity(sets - sets.mean(dim=1, keepdim=True)).sum(dim=-1).argmin(dim=-1),
            "You look from the mean of the set, and the odd one has pulled that towards itself. Which centre was "
            "given?",
        ),
        Mistake(
            "the least similar pair decides",
            lambda sets, centre: _similarity(sets - centre).amin(dim=-1).argmin(dim=-1),
            "You look at the worst pair of each image, and a pair has two members. To how many images should one be "
            "compared?",
        ),
    ),
)


# ---- set_mean --------------------------------------------------------------------------------------------------------


def _set_mean(x: Tensor, token_mask: Tensor) -> Tensor:
    means = []
    for images, real in zip(x.double().numpy(), token_mask.numpy(), strict=True):
        means.append(images[real].mean(axis=0) if real.any() else np.zeros(images.shape[1]))
    return torch.from_numpy(np.stack(means)).float()


@as_cases
def _mean_cases(rng: np.random.Generator) -> list:
    ragged = torch.from_numpy(rng.random((4, 6)) < 0.6)
    ragged[0] = torch.tensor([True, False, True, True, False, False])
    with_nan = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [math.inf, math.nan]]])
    return [
        (torch.tensor([[[2.0], [4.0], [100.0]]]), torch.tensor([[True, True, False]])),
        (normal(rng, 2, 3, 4), torch.ones(2, 3, dtype=torch.bool)),
        (normal(rng, 4, 6, 3), ragged),
        (normal(rng, 2, 3, 2), torch.tensor([[False, False, False], [True, False, True]])),
        (with_nan, torch.tensor([[True, True, False]])),
    ]


set_mean = Exercise(
    name="set_mean",
    title="The mean of sets of different sizes",
    notebook=NOTEBOOK,
    section="Is it attention that does it?",
    difficulty="medium",
    minutes=10,
    oracle=_set_mean,
    cases=_mean_cases,
    covered="full sets, sets with padding anywhere, an empty set, and padding that is not a number. DeepSets is "
    "little more than this mean between two networks",
    mistakes=(
        Mistake(
            "divided by the padded size",
            lambda x, mask: torch.where(mask[..., None], x, 0.0).sum(dim=1) / x.size(1),
            "Padding adds nothing to your sum, and still it counts in the division. How many images are real?",
        ),
        Mistake(
            "the padding is counted in",
            lambda x, mask: x.mean(dim=1),
            "Your mean depends on what stands in the padding.",
        ),
        Mistake(
            "an empty set gives NaN",
            lambda x, mask: torch.where(mask[..., None], x, 0.0).sum(dim=1) / mask.sum(dim=1, keepdim=True),
            "A set without a single real image divides 0 by 0. What did the task say about it?",
        ),
        Mistake(
            "padding is multiplied by 0",
            lambda x, mask: (x * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1),
            "What is 0 times NaN, or 0 times infinity? Padding may hold anything.",
        ),
        Mistake(
            "the sum, not the mean",
            lambda x, mask: torch.where(mask[..., None], x, 0.0).sum(dim=1),
            "A larger set gives you a larger vector. What must the sum be divided by?",
        ),
        Mistake(
            "the mask is read the wrong way round",
            lambda x, mask: _set_mean(x, ~mask),
            "You average what is padding. What does True say in a token mask?",
        ),
    ),
)


# ---- a number and a choice -------------------------------------------------------------------------------------------


guessing_loss = Quantity(
    name="guessing_loss",
    title="The loss of one who guesses",
    notebook=NOTEBOOK,
    section="The predictor",
    difficulty="easy",
    minutes=5,
    expected=math.log(10),
    rtol=5e-3,
    unit="nats a set",
    covered="ten images with equal scores. It is the number to expect in the first step of training: a loss that "
    "starts elsewhere points to a mistake before a minute of training is spent",
    wrong_values=(
        WrongValue(
            "the probability",
            0.1,
            "That is the probability that each image gets. The loss is a function of it: which?",
        ),
        WrongValue(
            "the share of wrong answers",
            0.9,
            "That is how often a guess is wrong. The loss is a function of the probability of the right answer.",
        ),
        WrongValue(
            "in bits",
            math.log2(10),
            "The size is right in another unit: you took the logarithm to base 2.",
        ),
        WrongValue(
            "the logarithm to base 10",
            1.0,
            "The size is right in another unit: you took the logarithm to base 10.",
        ),
        WrongValue(
            "two answers to choose between",
            math.log(2),
            "That is the loss of one who guesses between odd and ordinary. Among how many does the softmax share out?",
        ),
        WrongValue(
            "the sign is missing",
            -math.log(10),
            "The logarithm of a probability is negative, and a loss is not.",
        ),
        WrongValue(
            "nine images",
            math.log(9),
            "That is one image too few. Does the odd one take part in the softmax?",
        ),
    ),
)


learned_the_place = Choice(
    name="learned_the_place",
    title="A perfect score, and nothing learned",
    notebook=NOTEBOOK,
    section="An order that is learnt all the same",
    difficulty="medium",
    minutes=5,
    options={
        "a": Option(
            False,
            "Overfitting to images shows on images that were not trained on, wherever the odd one stands. This model "
            "is perfect on new images as long as nothing is moved.",
        ),
        "b": Option(
            True,
            "With positions, *the last one* is an answer that is always right in training and needs no look at an "
            "image. Gradient descent takes the easiest way that the data leave open.",
        ),
        "c": Option(
            False,
            "The encoding of each place was seen in training, since each set has the same ten. What was never seen is "
            "another thing: which?",
        ),
        "d": Option(
            False,
            "If positions drowned the features, the model would find it hard to be right in training too, and it is "
            "perfect there. By what means could it be?",
        ),
    },
)
