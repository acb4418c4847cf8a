"""Draw the two pictures of README.md from the saved models: `python docs/readme_figures.py`."""

from pathlib import Path

import torch

from course_utils import checkpoints, plotting
from course_utils.anomaly import AnomalyPredictor, anomaly_datasets
from course_utils.features import extract
from course_utils.images import load_images
from course_utils.reverse import ReverseDataset, ReversePredictor

FOLDER = Path(__file__).parent / "figures"


def draw_reverse_attention() -> None:
    """Attention of the reverse model on one sequence."""
    model = checkpoints.load(ReversePredictor, "reverse")
    sequence, _ = ReverseDataset(num_categories=10, seq_len=16, size=1, seed=42)[0]
    (attention,) = model.get_attention_maps(model.one_hot(sequence[None]))
    figure = plotting.attention_maps([attention[0]], queries=sequence.tolist())
    figure.savefig(FOLDER / "reverse_attention.png", dpi=100, metadata={"Software": None})


def draw_odd_ones() -> None:
    """Sets of digits with the probability that each image is the odd one."""
    model = checkpoints.load(AnomalyPredictor, "anomaly_digits_pixels")
    image_set = load_images("digits")
    test = anomaly_datasets(image_set, extract(image_set.images), set_size=10, seed=42)["test"]
    features, members, positions = test.__getitems__([60, 130, 200, 340]).tensors
    with torch.no_grad():
        probabilities = model(features, add_positional_encoding=False).squeeze(-1).softmax(dim=-1)
    figure = plotting.image_sets(
        image_set.images[image_set.splits["test"]][members],
        odd=positions.tolist(),
        captions=[[f"{value:.0%}" for value in row] for row in probabilities.tolist()],
    )
    figure.savefig(FOLDER / "odd_ones.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    draw_reverse_attention()
    draw_odd_ones()
