"""Claim: the model finds odd images of classes that it never saw in training, if less well.

The backbone has: ImageNet holds classes like those of CIFAR-100, so "unseen" is said of what is trained here alone.
"""

import torch
from torch import Tensor

from course_utils.anomaly import AnomalyPredictor, with_evidence_computed
from course_utils.rules import cosine_rule
from course_utils.set_evaluation import chooser, set_accuracy

HELD_OUT = tuple(range(2, 100, 5))  # every fifth class by number


def seen_and_unseen(
    features: Tensor, labels: Tensor, train: Tensor, test: Tensor, held_out: tuple[int, ...] = HELD_OUT
) -> dict[str, dict]:
    """Accuracy on sets of classes that were in training, and on sets of classes that were not.

    The model is one whose Transformer adds nothing yet: class evidence of the classes seen, and the posterior rule.

    Args:
        features: of all images, [N, D].
        labels: of all images, [N], from 0.
        train: rows of the training images, those of held-out classes included; these are left out here.
        test: rows of the test images.
        held_out: class numbers.

    Returns:
        For "seen" and "unseen" classes the number of classes, and the accuracy of the model and of the cosine rule.
        Both kinds of sets are drawn from their own classes only.
    """
    unseen = torch.isin(labels, torch.tensor(held_out))
    train = train[~unseen[train]]
    classes, numbered_anew = labels[train].unique(return_inverse=True)
    model = AnomalyPredictor(
        input_dim=features.size(1),
        model_dim=8,
        num_classes=1,
        num_heads=1,
        num_layers=1,
        lr=1e-3,
        warmup=0,
        max_iters=1,
        known_classes=len(classes),
    ).eval()
    model.learn_classes(features[train], numbered_anew)
    results = {}
    for name, rows in (("seen", test[~unseen[test]]), ("unseen", test[unseen[test]])):
        of_test, here = features[rows], torch.arange(len(rows))
        quick, evidence = with_evidence_computed(model, of_test)
        results[name] = {
            "classes": len(labels[rows].unique()),
            "cosine rule": set_accuracy(cosine_rule, of_test, labels[rows], here).as_data(),
            "class evidence and posterior rule": set_accuracy(chooser(quick), evidence, labels[rows], here).as_data(),
        }
    return results
