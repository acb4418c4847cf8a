"""Claim: attention beats simple baselines on sets of photographs. And: at which set sizes?"""

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from course_utils.anomaly import AnomalyPredictor, with_evidence_computed
from course_utils.rules import cosine_rule, posterior_rule
from course_utils.set_evaluation import SEEDS, chooser, set_accuracy

SHRINKAGE = 0.5  # of the within-class covariance, which 450 images a class determine poorly in 1,280 dimensions
SET_SIZES = (5, 10, 15, 20)
# Reported by Phillip Lippe for ResNet-34's features, on sets that he drew. One run, one draw of the companions.
PUBLISHED = 0.9430


def rules_and_model(
    model: AnomalyPredictor, features: Tensor, labels: Tensor, train: Tensor, test: Tensor, set_size: int = 10
) -> dict[str, dict]:
    """Accuracy of each rule and of the model on the test images.

    Args:
        model: with known classes.
        features: of all images, [N, D].
        labels: of all images, [N].
        train: rows of the images that the discriminant rule is fitted to.
        test: rows of the images that sets are made of.
        set_size: images in a set.

    Returns:
        For each method its `SetAccuracy.as_data`.
    """
    of_test, here = features[test], torch.arange(len(test))
    discriminant = _discriminant_log_probabilities(features[train], labels[train], of_test)
    quick, evidence = with_evidence_computed(model, of_test)

    def measured(choose, seen: Tensor) -> dict:
        return set_accuracy(choose, seen, labels[test], here, set_size).as_data()

    return {
        "guessing": {"accuracy": 1 / set_size},
        "cosine rule": measured(cosine_rule, of_test),
        "discriminant rule": measured(_most_likely_odd, discriminant),
        "class evidence and posterior rule": measured(_most_likely_odd, evidence),
        "Transformer on class evidence": measured(chooser(quick), evidence),
        "published (ResNet-34)": {"accuracy": PUBLISHED},
    }


def over_set_sizes(model: AnomalyPredictor, features: Tensor, labels: Tensor, test: Tensor) -> dict[str, dict]:
    """Accuracy of the cosine rule and the model at each of SET_SIZES, on the test images; arguments as above."""
    of_test, here = features[test], torch.arange(len(test))
    quick, evidence = with_evidence_computed(model, of_test)
    seeds = SEEDS[:1]
    return {
        str(size): {
            "cosine rule": set_accuracy(cosine_rule, of_test, labels[test], here, size, seeds).as_data(),
            "Transformer on class evidence": set_accuracy(
                chooser(quick), evidence, labels[test], here, size, seeds
            ).as_data(),
        }
        for size in SET_SIZES
    }


def _most_likely_odd(sets: Tensor) -> Tensor:
    return posterior_rule(sets).argmax(dim=-1)


def _discriminant_log_probabilities(features: Tensor, labels: Tensor, others: Tensor) -> Tensor:
    """Log-probabilities [M, C] of other images' classes, by class means and the shrunk covariance within classes."""
    discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
    discriminant.fit(features.double().numpy(), labels.numpy())
    logits = discriminant.decision_function(others.double().numpy())
    return torch.from_numpy(logits.astype(np.float32)).log_softmax(dim=-1)
