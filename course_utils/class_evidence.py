"""What an image's features say about its class: two small classifiers of the classes that were seen in training.

Its log-probabilities make a set of images nearly a matter of counting: one class explains all images but one.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# How a classifier is fitted: chosen on the validation images of CIFAR-100, with features of EfficientNet-Lite0.
EPOCHS = 10
FEWEST_STEPS = 300  # where the images are so few that ten passes over them are soon made
BATCH_SIZE = 512
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.05
HIDDEN = 512  # units of the second classifier


class ClassEvidence(nn.Module):
    """Log-probabilities of the known classes, from the square roots of an image's features.

    The features are averages of what a network found in the parts of an image, none of them negative, and most of them
    small. Their square roots are spread more evenly (Hellinger's distance in place of Euclid's), which suits a linear
    classifier. A second one with a hidden layer makes other mistakes; the logarithms of their probabilities are
    averaged. Both are fitted by `fit` and fixed from then on: no optimizer moves them.

    Args:
        input_dim: number D of features.
        num_classes: number C of known classes.
        dropout: of the square roots, while in training mode. It makes the classifiers nearly as unsure of the images
            that they were fitted to as of new ones, so that a network behind them learns from what it will meet.
        hidden: units of the second classifier; 0 for the linear one alone.
    """

    def __init__(self, input_dim: int, num_classes: int, dropout: float = 0.5, hidden: int = HIDDEN):
        super().__init__()
        self.dropout = dropout
        self.num_classes = num_classes
        self.register_buffer("mean", torch.zeros(input_dim))
        self.register_buffer("scale", torch.ones(input_dim))
        self.linear = nn.Linear(input_dim, num_classes)
        self.network = _with_a_hidden_layer(input_dim, hidden, num_classes) if hidden else None
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Log-probabilities [..., C] of features [..., D]; negative features count as 0.

        Raises:
            ValueError: for features of another width.
        """
        if x.size(-1) != len(self.mean):
            raise ValueError(f"x must be [..., input_dim={len(self.mean)}], got {list(x.shape)}")
        x = F.dropout(self._standardised(x), self.dropout, self.training)
        log_probabilities = self.linear(x).log_softmax(dim=-1)
        if self.network is None:
            return log_probabilities
        return ((log_probabilities + self.network(x).log_softmax(dim=-1)) / 2).log_softmax(dim=-1)

    def fit(self, features: Tensor, labels: Tensor, dropout: float = 0.5, seed: int = 0) -> None:
        """Fit the classifiers by gradient steps (AdamW, one cycle of the learning rate), and fix them.

        Dropout keeps them from learning single images by heart; with some hundred images a class and more features
        than that they otherwise would.

        Args:
            features: of the training images, [N, D].
            labels: their classes, integers [N] from 0 to C-1.
            dropout: of the square roots, while fitting.
            seed: of the initial weights, the order of the images and the dropout.

        Raises:
            ValueError: if a label is no class.
        """
        if labels.min() < 0 or labels.max() >= self.num_classes:
            raise ValueError(f"labels must be 0 to {self.num_classes - 1}, got {labels.min()} to {labels.max()}")
        roots = features.clamp(min=0).sqrt()
        self.mean.copy_(roots.mean(dim=0))
        self.scale.copy_(roots.std(dim=0) + 1e-3)
        inputs = (roots - self.mean) / self.scale
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for classifier in filter(None, (self.linear, self.network)):
                _fit(classifier, inputs, labels, dropout)

    def _standardised(self, x: Tensor) -> Tensor:
        return (x.clamp(min=0).sqrt() - self.mean) / self.scale


def _with_a_hidden_layer(input_dim: int, hidden: int, num_classes: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(input_dim, hidden),
        nn.LayerNorm(hidden),
        nn.GELU(),
        nn.Dropout(0.5),
        nn.Linear(hidden, num_classes),
    )


def _fit(classifier: nn.Module, inputs: Tensor, labels: Tensor, dropout: float) -> None:
    """Train a classifier anew on inputs [N, D]; it is left as it was found, in training mode or not, and fixed."""
    for layer in classifier.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    was_training = classifier.training
    classifier.train().requires_grad_(True)
    batch_size = min(BATCH_SIZE, len(inputs))
    steps_an_epoch = len(inputs) // batch_size
    epochs = max(EPOCHS, math.ceil(FEWEST_STEPS / steps_an_epoch))
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=epochs * steps_an_epoch, pct_start=0.15
    )
    for _ in range(epochs):
        for chosen in torch.randperm(len(inputs)).split(batch_size)[:steps_an_epoch]:  # full batches only
            logits = classifier(F.dropout(inputs[chosen], dropout))
            optimizer.zero_grad()
            F.cross_entropy(logits, labels[chosen]).backward()
            optimizer.step()
            schedule.step()
    classifier.train(was_training).requires_grad_(False)
