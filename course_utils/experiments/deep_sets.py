"""DeepSets on what the Transformer sees: what a mean over the set can do in place of attention.

Zaheer et al. (2017), Deep Sets: each image is seen on its own, then beside the mean of all.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.anomaly import AnomalyPredictor, SetAnomalyDataset, with_evidence_computed
from course_utils.batches import train_loader
from course_utils.experiments.gradient_steps import endless
from course_utils.set_evaluation import SetAccuracy, set_accuracy

DRAWS = 2  # of the dropout in the class evidence of each training image


class DeepSets(nn.Module):
    """Scores [B, T] of sets [B, T, D]: each image on its own, then beside the mean of all.

    Args:
        input_dim: number D of an image's features.
        width: of the hidden layers.
        input_dropout: dropout on the features.
        dropout: dropout on the hidden layer of each half.
    """

    def __init__(self, input_dim: int, width: int = 256, input_dropout: float = 0.0, dropout: float = 0.0):
        super().__init__()
        self.each = nn.Sequential(
            nn.Dropout(input_dropout),
            nn.Linear(input_dim, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.together = nn.Sequential(
            nn.Linear(2 * width, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, sets: Tensor) -> Tensor:
        """Scores [B, T] from features [B, T, D]."""
        images = self.each(sets)  # [B, T, width]
        mean = images.mean(dim=1, keepdim=True).expand_as(images)
        return self.together(torch.cat([images, mean], dim=-1)).squeeze(-1)


class DeepSetsOnEvidence(DeepSets):
    """DeepSets that sees log-probabilities [B, T, C] as the Transformer with known classes does.

    With a width of 256 it has about as many parameters as that Transformer, of width 128.
    """

    def forward(self, sets: Tensor) -> Tensor:
        """Scores [B, T] from log-probabilities [B, T, C]."""
        return super().forward(torch.cat([sets.clamp(min=-15.0) / 3 + 2, sets.exp() * 3], dim=-1))


def deep_sets(
    model: AnomalyPredictor,
    features: Tensor,
    labels: Tensor,
    train: Tensor,
    test: Tensor,
    epochs: int = 2,
    seed: int = 0,
) -> dict[str, object]:
    """Train DeepSets on the class evidence of a model, and test it.

    Args:
        model: gives the class evidence, in training under dropout as its own Transformer had it.
        features: of all images, [N, D].
        labels: of all images, [N].
        train: rows of the training images.
        test: rows of the test images.
        epochs: passes over the training images.
        seed: of the initial weights and the sets.

    Returns:
        "parameters", "epochs", and "test", a `SetAccuracy.as_data`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        evidence = torch.cat([_under_dropout(model, features[train]) for _ in range(DRAWS)])  # [DRAWS M, C]
        network = _trained(DeepSetsOnEvidence(2 * evidence.size(1)), evidence, labels[train].repeat(DRAWS), epochs)
    _, of_test = with_evidence_computed(model, features[test])
    measured: SetAccuracy = set_accuracy(
        lambda sets: network(sets).argmax(dim=-1), of_test, labels[test], torch.arange(len(test))
    )
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return {"parameters": parameters, "epochs": epochs, "test": measured.as_data()}


def _under_dropout(model: AnomalyPredictor, features: Tensor) -> Tensor:
    model.class_evidence.train()
    with torch.no_grad():
        evidence = torch.cat([model.class_evidence(part) for part in features.split(1000)])
    model.class_evidence.eval()
    return evidence


def _trained(network: DeepSets, evidence: Tensor, labels: Tensor, epochs: int) -> DeepSets:
    loader = train_loader(SetAnomalyDataset(evidence, labels, train=True), batch_size=256)
    steps = max(1, round(epochs * len(loader) / DRAWS))
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    batches = endless(loader)
    for _ in range(steps):
        sets, _, positions = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(network(sets), positions).backward()
        optimizer.step()
        schedule.step()
    return network.eval()
