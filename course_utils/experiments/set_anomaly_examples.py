"""Question: what does the model look at in one set, and which classes does it confuse? In names, not images."""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.anomaly import AnomalyPredictor, SetAnomalyDataset
from course_utils.batches import eval_loader
from course_utils.set_evaluation import SEEDS

MOST_CONFUSED = 10  # pairs of classes to list


def examples(
    model: AnomalyPredictor, features: Tensor, labels: Tensor, rows: Tensor, names: Sequence[str], set_size: int = 10
) -> dict[str, object]:
    """The attention maps of the first set, and the pairs of classes that are mistaken most often.

    Args:
        model: whose mistakes are counted.
        features: of all images, [N, D].
        labels: of all images, [N].
        rows: images that sets are made of.
        names: of the classes.
        set_size: images in a set, the odd one included.

    Returns:
        "classes": the class of each image of the first set, the odd one last; "attention": its maps
        [layers, H, set_size, set_size]; "mistakes": over all sets of one seed; "confused": the pairs of classes with
        the most mistakes, whichever of the two was the odd one, each as [class, class, mistakes].
    """
    sets_of_split = SetAnomalyDataset(features, labels[rows], set_size, train=False, seed=SEEDS[0], rows=rows)
    first, members, _ = sets_of_split[0]
    attention = torch.cat(model.get_attention_maps(first[None], add_positional_encoding=False))
    confused: Counter[tuple[str, str]] = Counter()
    with torch.no_grad():
        for sets, indices, odd in eval_loader(sets_of_split, batch_size=500):
            wrong = model(sets, add_positional_encoding=False).squeeze(-1).argmax(dim=-1) != odd
            of_classes = labels[rows][indices[wrong][:, [0, -1]]].tolist()
            confused.update(tuple(sorted((names[other], names[own]))) for other, own in of_classes)
    return {
        "classes": [names[label] for label in labels[rows][members].tolist()],
        "attention": [[[[round(w, 3) for w in row] for row in head] for head in layer] for layer in attention.tolist()],
        "mistakes": confused.total(),
        "confused": [[*pair, count] for pair, count in sorted(confused.items(), key=lambda item: (-item[1], item[0]))][
            :MOST_CONFUSED
        ],
    }
