"""Set anomaly detection: in a set of images of one class, find the one that is of another class."""

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import course_utils.quiet  # noqa: F401

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import ConcatDataset, Dataset

from course_utils.batches import WholeBatch, eval_loader, train_loader
from course_utils.class_evidence import ClassEvidence
from course_utils.feature_cache import cached_features
from course_utils.features import default_size
from course_utils.images import ImageSet, load_images
from course_utils.machine import Machine
from course_utils.predictor import TransformerPredictor
from course_utils.rules import posterior_rule
from course_utils.training import Loaders, Recipe, is_published, load_or_fit, recipe_of, test

FEWEST_SETS = 2_000  # to measure an accuracy on: its standard error at 99 % is then 0.2 %

# The published recipe (for CIFAR-100 and ResNet-34), and one of a size for digits on a laptop.
RECIPES = {
    "quick": Recipe(
        model={
            "num_classes": 1,
            "model_dim": 64,
            "num_heads": 4,
            "num_layers": 2,
            "dropout": 0.1,
            "input_dropout": 0.1,
            "lr": 2e-3,
            "warmup": 100,
        },
        max_epochs=60,
        batch_size=64,
        gradient_clip_val=2.0,
    ),
    "full": Recipe(
        model={
            "num_classes": 1,
            "model_dim": 256,
            "num_heads": 4,
            "num_layers": 4,
            "dropout": 0.1,
            "input_dropout": 0.1,
            "lr": 5e-4,
            "warmup": 100,
        },
        max_epochs=100,
        batch_size=64,
        gradient_clip_val=2.0,
    ),
}
# The quick profile on photographs, of which there are many more: some minutes on a laptop, once there are features.
_QUICK_ON_PHOTOGRAPHS = replace(
    RECIPES["quick"],
    model={**RECIPES["quick"].model, "model_dim": 256, "lr": 5e-4},
    max_epochs=3,
)


# On CIFAR-100 with features of EfficientNet-Lite0: a model that knows the classes it was trained on, for a laptop. It
# was chosen on the validation images; docs/set_anomaly_log.md tells what else was tried.
_KNOWS_CLASSES = Recipe(
    model={
        "num_classes": 1,
        "model_dim": 128,
        "num_heads": 4,
        "num_layers": 2,
        "dropout": 0.1,
        "input_dropout": 0.5,
        "lr": 1e-3,
        "warmup": 50,
        "norm_first": True,
        "known_classes": 100,
    },
    max_epochs=1,
    batch_size=128,
    gradient_clip_val=2.0,
)


def recipes_for(images: str, backbone: str = "pixels") -> dict[str, Recipe]:
    """The recipe of each profile on an image set, seen through a backbone."""
    if images == "digits":
        return RECIPES
    if (images, backbone) == ("cifar100", "efficientnet_lite0"):
        return {"quick": _KNOWS_CLASSES, "full": _KNOWS_CLASSES}
    return {**RECIPES, "quick": _QUICK_ON_PHOTOGRAPHS}


class SetAnomalyDataset(Dataset):
    """Sets of images of which all but one belong to one class.

    Item i asks for image i: it is the odd one and stands last. The others are different images of one other class,
    drawn at random.

    Args:
        img_feats: features [N, D] of the images.
        labels: class number of each image, [N], integers of any width.
        set_size: images in a set, the odd one included.
        train: draw new companions at each access, from torch's global generator (which a DataLoader seeds for each
            worker and epoch). Otherwise they are drawn once and stay.
        seed: of the fixed sets; a training set does not use it.
        rows: the row of img_feats that belongs to each image, [N], where img_feats has those of other images as well
            (of another split, say) and may be too large to be copied; None: image i has row i.

    Raises:
        ValueError: if sizes do not fit together, there is only one class, or a class has too few images for a set.
        TypeError: if the labels are no integers.
    """

    def __init__(
        self,
        img_feats: Tensor | np.ndarray,
        labels: Tensor | np.ndarray | Sequence[int],
        set_size: int = 10,
        train: bool = True,
        seed: int = 0,
        *,
        rows: Tensor | np.ndarray | Sequence[int] | None = None,
    ):
        self.img_feats = _as_tensor(img_feats)
        self.labels = _integer_labels(labels)
        self.rows = None if rows is None else _as_tensor(rows).long()
        self.set_size = set_size
        self.train = train
        _check_sizes(self.img_feats, self.labels, self.rows, set_size)

        # The images sorted by class: class c (by rank) owns the positions first[c] to first[c] + count[c] - 1.
        classes, self._class_of, self._count = self.labels.unique(return_inverse=True, return_counts=True)
        self._by_class = torch.argsort(self._class_of, stable=True)
        self._first = self._count.cumsum(0) - self._count
        _check_classes(classes, self._count, set_size)

        self._fixed_companions = None
        if not train:
            everything = torch.arange(len(self.labels))
            self._fixed_companions = self._draw_companions(everything, torch.Generator().manual_seed(int(seed)))

    def __len__(self) -> int:
        """The number of images: each is the odd one of one set."""
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, int]:
        """Features [set_size, D], image indices [set_size], and the position of the odd one."""
        features, indices, position = self.__getitems__([index])[0]
        return features, indices, int(position)

    def __getitems__(self, indices: Sequence[int]) -> WholeBatch:
        """A batch of sets: features [B, set_size, D], image indices [B, set_size], positions [B]."""
        odd = self._resolved(torch.as_tensor(indices))
        fixed = self._fixed_companions
        companions = self._draw_companions(odd) if fixed is None else fixed[odd]
        members = torch.cat([companions, odd[:, None]], dim=1)  # [B, set_size]
        rows = members if self.rows is None else self.rows[members]
        features = self.img_feats.index_select(0, rows.flatten()).unflatten(0, rows.shape)
        positions = torch.full((len(odd),), self.set_size - 1)
        return WholeBatch(features, members, positions)

    def _resolved(self, indices: Tensor) -> Tensor:
        """Indices [B] as numbers from 0, a negative one counted from the end."""
        count = len(self)
        outside = (indices < -count) | (indices >= count)
        if outside.any():
            raise IndexError(f"an index must lie between {-count} and {count - 1}, got {int(indices[outside][0])}")
        return torch.where(indices < 0, indices + count, indices)

    def _draw_companions(self, odd: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """For each odd image [B], the indices [B, set_size - 1] of different images of one other class."""
        own_class = self._class_of[odd]
        other_class = torch.randint(len(self._count) - 1, odd.shape, generator=generator)
        other_class += other_class >= own_class  # skip the own class; the other ones stay equally likely
        chosen = _distinct_integers(self._count[other_class], self.set_size - 1, generator)
        return self._by_class[self._first[other_class][:, None] + chosen]


def _distinct_integers(below: Tensor, how_many: int, generator: torch.Generator | None = None) -> Tensor:
    """For each bound n of `below` [B], `how_many` different integers from 0 to n-1, in random order: [B, how_many].

    Floyd's algorithm (Bentley & Floyd, 1987) for the whole batch at once. Its cost does not grow with the bounds.
    """
    uniform = torch.rand(how_many, len(below), dtype=torch.float64, generator=generator)
    largest = below - torch.arange(how_many, 0, -1)[:, None]  # [how_many, B]: of each draw, a row for each
    candidates = uniform.mul_(largest + 1).long()
    for number in range(1, how_many):
        taken = (candidates[:number] == candidates[number]).any(dim=0)
        torch.where(taken, largest[number], candidates[number], out=candidates[number])
    chosen = candidates.T  # [B, how_many]
    shuffle = torch.rand(chosen.shape, generator=generator).argsort(dim=1)  # Floyd's order is not uniform; this one is
    return chosen.gather(1, shuffle)


def _as_tensor(array: Tensor | np.ndarray | Sequence) -> Tensor:
    """The array as a tensor that shares its memory, also where that is read-only, as of a memory-mapped file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # nothing here writes to it
        return torch.as_tensor(array)


def _integer_labels(labels: Tensor | np.ndarray | Sequence[int]) -> Tensor:
    labels = _as_tensor(labels)
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"labels must be integers, got {labels.dtype}")
    return labels.long()


def _check_sizes(img_feats: Tensor, labels: Tensor, rows: Tensor | None, set_size: int) -> None:
    if rows is not None:
        if rows.shape != labels.shape:
            raise ValueError(f"rows must be [N] like the labels, got {list(rows.shape)} and {list(labels.shape)}")
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(img_feats):
            raise ValueError(
                f"rows must lie between 0 and {len(img_feats) - 1}, the last row of img_feats, "
                f"got {int(rows.min())} to {int(rows.max())}"
            )
    if img_feats.dim() != 2 or labels.dim() != 1 or (rows is None and len(img_feats) != len(labels)):
        raise ValueError(
            f"img_feats must be [N, D] and labels [N] with the same N, "
            f"got {list(img_feats.shape)} and {list(labels.shape)}"
        )
    if set_size < 2:
        raise ValueError(
            f"a set needs the odd image and at least one other: set_size must be at least 2, got {set_size}"
        )


def _check_classes(classes: Tensor, count: Tensor, set_size: int) -> None:
    if len(classes) < 2:
        raise ValueError(f"the odd image comes from another class: at least 2 classes are needed, got {len(classes)}")
    if count.min() < set_size - 1:
        smallest = int(count.argmin())
        raise ValueError(
            f"class {int(classes[smallest])} has {int(count[smallest])} images, but a set of set_size={set_size} needs "
            f"{set_size - 1} of one class; use a smaller set_size or more images"
        )


class AnomalyPredictor(TransformerPredictor):
    """A Transformer that gives each image of a set a number: the higher, the more likely it is the odd one.

    Args:
        input_dim: number D of an image's features; this and all that follows up to norm_first as in
            `TransformerPredictor`.
        model_dim: see there.
        num_classes: numbers to predict for each image: 1.
        num_heads: see there.
        num_layers: see there.
        lr: see there.
        warmup: see there.
        max_iters: see there.
        dropout: see there.
        input_dropout: dropout on the input features.
        norm_first: see there.
        known_classes: number C of classes that the training images belong to, of which the model is to know. With 0,
            the default, the Transformer sees the features and its output is the score. Otherwise it sees how likely
            each of these classes is, by fixed classifiers (`class_evidence`, fitted by `learn_classes` and kept in the
            state dict), and its output is added to the score of the `posterior_rule`, which is
            weighted by the parameter `rule_weight`. The Transformer begins by adding nothing.
    """

    def __init__(
        self,
        input_dim: int,
        model_dim: int,
        num_classes: int,
        num_heads: int,
        num_layers: int,
        lr: float,
        warmup: int,
        max_iters: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        norm_first: bool = False,
        known_classes: int = 0,
    ):
        super().__init__(
            input_dim=input_dim,
            model_dim=model_dim,
            num_classes=num_classes,
            num_heads=num_heads,
            num_layers=num_layers,
            lr=lr,
            warmup=warmup,
            max_iters=max_iters,
            dropout=dropout,
            input_dropout=input_dropout,
            norm_first=norm_first,
        )
        self.hparams.known_classes = known_classes = int(known_classes)
        self.class_evidence = None
        if known_classes != 0:
            plain = self.hparams
            self.class_evidence = ClassEvidence(plain.input_dim, known_classes, plain.input_dropout)
            self.input_net = nn.Sequential(nn.Identity(), nn.Linear(2 * known_classes, plain.model_dim))
            nn.init.zeros_(self.output_net[-1].weight)
            nn.init.zeros_(self.output_net[-1].bias)
            self.rule_weight = nn.Parameter(torch.ones(()))

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        add_positional_encoding: bool = True,
        *,
        token_mask: Tensor | None = None,
    ) -> Tensor:
        """The score of each image, [B, T, 1], from features [B, T, D]; the arguments are those of the base class."""
        if self.class_evidence is None:
            return super().forward(x, mask, add_positional_encoding, token_mask=token_mask)
        log_probabilities = self.class_evidence(x)  # [B, T, C]
        correction = super().forward(
            _class_tokens(log_probabilities), mask, add_positional_encoding, token_mask=token_mask
        )
        return correction + self.rule_weight * posterior_rule(log_probabilities, token_mask)[..., None]

    def get_attention_maps(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        add_positional_encoding: bool = True,
        *,
        token_mask: Tensor | None = None,
    ) -> list[Tensor]:
        """The attention weights [B, H, T, T] of each block for this input; the arguments are those of `forward`."""
        if self.class_evidence is not None:
            x = _class_tokens(self.class_evidence(x))
        return super().get_attention_maps(x, mask, add_positional_encoding, token_mask=token_mask)

    def learn_classes(self, features: Tensor, labels: Tensor, seed: int = 0) -> None:
        """Fit what the model knows of single images' classes, before it is trained on sets.

        Args:
            features: of the training images, [N, D].
            labels: their classes, integers [N] from 0 to known_classes - 1.
            seed: of the fit.

        Raises:
            ValueError: if the model is to know of no classes, or a label is none of them.
        """
        if self.class_evidence is None:
            raise ValueError("a model with known_classes=0 has no classes to learn")
        self.class_evidence.fit(features, labels, seed=seed)

    def _calculate_loss(self, batch: tuple[Tensor, Tensor, Tensor], mode: str) -> Tensor:
        img_sets, _, labels = batch  # [B, T, D], indices, position of the odd one [B]
        logits = self(img_sets, add_positional_encoding=False)  # a set has no order
        if logits.size(-1) != 1:
            raise ValueError(
                f"a set anomaly model gives each image one number: num_classes must be 1, got {logits.size(-1)}"
            )
        logits = logits.squeeze(dim=-1)  # [B, T]: the softmax runs over the images of the set
        loss = F.cross_entropy(logits, labels)
        if self.is_noted(mode):
            accuracy = (logits.argmax(dim=-1) == labels).float().mean()
            how = {"batch_size": len(labels), "sync_dist": mode != "train"}
            self.log(f"{mode}_loss", loss, **how)
            self.log(f"{mode}_acc", accuracy, prog_bar=mode == "val", **how)
        return loss

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> Tensor:
        """The cross-entropy of a batch, in nats a set."""
        return self._calculate_loss(batch, "train")

    def validation_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Log val_loss and val_acc, the share of sets whose odd one is found."""
        self._calculate_loss(batch, "val")

    def test_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Log test_loss and test_acc, the share of sets whose odd one is found."""
        self._calculate_loss(batch, "test")


def _class_tokens(log_probabilities: Tensor) -> Tensor:
    """What the Transformer sees of images with log-probabilities [..., C]: these and the probabilities, [..., 2 C].

    The one tells unlikely classes apart and the other likely ones; both are brought to a size of about 1.
    """
    return torch.cat([log_probabilities.clamp(min=-15.0) / 3 + 2, log_probabilities.exp() * 3], dim=-1)


def with_evidence_computed(model: AnomalyPredictor, features: Tensor) -> tuple[AnomalyPredictor, Tensor]:
    """The same model for images whose class probabilities are computed once, not anew in each set.

    Args:
        model: with known classes, in evaluation mode.
        features: of images, [N, D].

    Returns:
        A model that takes log-probabilities in place of features, and those of the images, [N, C].

    Raises:
        ValueError: for a model without known classes.
    """
    if model.class_evidence is None:
        raise ValueError("a model with known_classes=0 computes no class probabilities")
    with torch.no_grad():
        log_probabilities = torch.cat([model.class_evidence(part) for part in features.split(1000)])
    model = copy.deepcopy(model)
    model.class_evidence = nn.Identity()
    return model.eval(), log_probabilities


def anomaly_datasets(
    image_set: ImageSet, features: Tensor, set_size: int = 10, seed: int = 0
) -> dict[str, SetAnomalyDataset]:
    """The set data set of each split: "train" is drawn anew each time, "val" and "test" are fixed by the seed.

    Args:
        image_set: gives the labels and the splits.
        features: [N, D], one row for each of its images; it is not copied, and may be memory-mapped.
        set_size: images in a set.
        seed: of the fixed sets.
    """
    labels = torch.from_numpy(image_set.labels)
    return {
        split: SetAnomalyDataset(features, labels[indices], set_size, train=split == "train", seed=seed, rows=indices)
        for split, indices in image_set.splits.items()
    }


def train_anomaly(
    *,
    images: str = "digits",
    backbone: str = "pixels",
    image_size: int | None = None,
    set_size: int = 10,
    profile: str = "quick",
    checkpoint: str = "auto",
    max_epochs: int | None = None,
    seed: int = 42,
    callbacks: Sequence[pl.Callback] = (),
    machine: Machine = Machine(),
    **model_kwargs,
) -> tuple[AnomalyPredictor, dict[str, float]]:
    """Load or train a model of set anomaly detection, and test it.

    Args:
        images: name of the image set, as in `images.load_images`.
        backbone: name of the features, as in `features.extract`. They are computed if they are not in the cache yet.
        image_size: height and width in pixels that images are brought to; None for the backbone's own.
        set_size: images in a set, the odd one included.
        profile: "quick" (for a laptop) or "full" (the published recipe, for a GPU).
        checkpoint: "auto", "required" or "none", as in `training.load_or_fit`.
        max_epochs: None leaves it to the profile; a number trains, whatever is saved.
        seed: of the fixed sets, and of a training run.
        callbacks: for a training run, such as `training.History`.
        machine: devices and precision of a training run.
        **model_kwargs: arguments of `AnomalyPredictor`, in place of the profile's.

    Returns:
        The model, the best one by validation, and {"test_acc": ..., "val_acc": ..., "train_acc": ...}:
        shares of sets whose odd one is found. Of a published model only the test accuracy: it was trained and
        validated on other parts of the training images than ours.

    Raises:
        ValueError: for an unknown name, profile or choice of checkpoint.
        CheckpointMissingError: if the checkpoint is required and not there.
    """
    image_set = load_images(images)
    recipe = recipe_of(recipes_for(images, backbone), profile, model_kwargs)
    anomaly_datasets(image_set, torch.empty(len(image_set.labels), 0), set_size)  # refused now, not after the features
    features = cached_features(image_set, backbone, image_size)
    recipe = replace(recipe, model={"input_dim": features.size(1), **recipe.model})
    datasets = anomaly_datasets(image_set, features, set_size, seed)
    loaders = Loaders(
        train=train_loader(datasets["train"], recipe.batch_size),
        val=eval_loader(datasets["val"], recipe.batch_size),
        test=eval_loader(datasets["test"], recipe.batch_size),
    )
    model = load_or_fit(
        AnomalyPredictor,
        recipe,
        loaders,
        name=checkpoint_name(images, backbone, image_size),
        checkpoint=checkpoint,
        max_epochs=max_epochs,
        seed=seed,
        callbacks=callbacks,
        prepare=lambda new: _learn_classes(new, image_set, features, seed),
        machine=machine,
    )
    splits = ("test",) if is_published(model) else ("test", "val", "train")
    return model, _measure(model, image_set, features, set_size, seed, splits)


def _learn_classes(model: AnomalyPredictor, image_set: ImageSet, features: Tensor, seed: int) -> None:
    """Let a model that is to know the classes learn them, from the training images alone."""
    if model.hparams.known_classes:
        rows = torch.from_numpy(image_set.splits["train"])
        model.learn_classes(features[rows], torch.from_numpy(image_set.labels)[rows], seed)


def checkpoint_name(images: str, backbone: str, image_size: int | None = None) -> str:
    """The name of the checkpoint of a model that sees these features."""
    of_another_size = "" if image_size in (None, default_size(backbone)) else f"_{image_size}"
    return f"anomaly_{images}_{backbone}{of_another_size}"


def measure_anomaly(
    model: AnomalyPredictor,
    *,
    images: str = "digits",
    backbone: str = "pixels",
    image_size: int | None = None,
    set_size: int = 10,
    seed: int = 42,
) -> dict[str, float]:
    """The metrics of a trained model, on the sets that `train_anomaly` tests with; its arguments, its metrics."""
    image_set = load_images(images)
    features = cached_features(image_set, backbone, image_size)
    return _measure(model, image_set, features, set_size, seed)


def _measure(
    model: AnomalyPredictor,
    image_set: ImageSet,
    features: Tensor,
    set_size: int,
    seed: int,
    splits: Sequence[str] = ("test", "val", "train"),
) -> dict[str, float]:
    """The accuracy on each split, on sets that the seed fixes.

    A split of few images asks for each of them in several sets, so that a single mistake does not count for much.
    """
    labels = torch.from_numpy(image_set.labels)
    if model.class_evidence is not None:
        model, features = with_evidence_computed(model, features)

    def accuracy(split: str) -> float:
        rows = image_set.splits[split]
        draws = math.ceil(FEWEST_SETS / len(rows))
        fixed_sets = [
            SetAnomalyDataset(features, labels[rows], set_size, train=False, seed=seed + draw, rows=rows)
            for draw in range(draws)
        ]
        return test(model, eval_loader(ConcatDataset(fixed_sets), batch_size=256))

    return {f"{split}_acc": accuracy(split) for split in splits}
