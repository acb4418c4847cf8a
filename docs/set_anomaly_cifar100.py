"""Write the reading copy of the measurements on CIFAR-100: python docs/set_anomaly_cifar100.py."""

from pathlib import Path

import numpy as np

from course_utils import plotting
from course_utils.experiments.set_anomaly_cifar100 import recorded

PATH = Path(__file__).with_suffix(".md")
FIGURE = PATH.parent / "figures" / "cifar100_attention.png"

OPENING = (
    "# Finding the odd photograph: the numbers\n\n"
    "Ten photographs of CIFAR-100, nine of one class and one of another; which is the odd one?\n"
    'This page is the reading copy of what notebook 04 shows with `images="cifar100"` and\n'
    '`backbone="efficientnet_lite0"`: numbers and class names, and no photograph.\n'
    "It is written by `python docs/set_anomaly_cifar100.py` from the results in\n"
    "`course_utils/experiments/set_anomaly_cifar100.json`.\n"
    "How the model was chosen is told in [the log](set_anomaly_log.md).\n\n"
    "**Protocol.** Each of the 10,000 test images is the odd one once, among nine images of one other class drawn\n"
    "from the test images, for each of {seeds} seeds.\n"
    "The accuracy is the mean over the seeds, the 95 % interval is Wilson's for 10,000 sets, and the last column is\n"
    "the spread over the seeds.\n"
)


def percent(share: float, digits: int = 2) -> str:
    """A share as a percentage."""
    return f"{share * 100:.{digits}f} %"


def row(name: str, result: dict) -> str:
    """A row of a table: name, accuracy, interval, spread over the seeds."""
    if "interval_95" not in result:
        return f"| {name} | {percent(result['accuracy'])} | | |"
    interval = " to ".join(percent(bound, 1) for bound in result["interval_95"])
    of_each = result["of_each_seed"]
    spread = f"{percent(min(of_each))} to {percent(max(of_each))}" if len(of_each) > 1 else ""
    return f"| {name} | {percent(result['accuracy'])} | {interval} | {spread} |"


HEAD = "| {} | accuracy | 95 % interval | over the seeds |\n| --- | ---: | --- | --- |"


def methods(measured: dict) -> list[str]:
    """The table of baselines and the model."""
    rows = dict(measured["methods"])
    published = rows.pop("published (ResNet-34)")
    deep_sets = measured["deep_sets"]
    rows[f"DeepSets on class evidence ({deep_sets['parameters']:,} parameters)"] = deep_sets["test"]
    rows["published Transformer (ResNet-34 features)"] = published
    return ["## Baselines and the model\n", HEAD.format("method"), *(row(*pair) for pair in rows.items())]


def set_sizes(measured: dict) -> list[str]:
    """The table of set sizes."""
    rows = [row(f"{size}: {name}", result) for size, of in measured["set_sizes"].items() for name, result in of.items()]
    return [
        "\n## Other set sizes\n\nOne seed; the model was trained on sets of ten only.\n",
        HEAD.format("size"),
        *rows,
    ]


def held_out(measured: dict, made: dict) -> list[str]:
    """The table of classes that were left out of training."""
    words = (
        "\n## Classes held out\n\nTwenty classes were left out when the class evidence was learnt; "
        "the Transformer adds nothing here.\nSets are drawn from the 80 classes seen, or from the 20 others. "
        "The backbone was trained on ImageNet, which has classes like these, so they are unseen to what is trained "
        "here and not to the backbone; and a choice among fewer classes is another task, so compare each with the "
        f"cosine rule on the same sets.\n\nHeld out: {', '.join(made['held_out_classes'])}.\n"
    )
    rows = [
        row(f"{kind}: {name}", result)
        for kind, of in measured["held_out"].items()
        for name, result in of.items()
        if name != "classes"
    ]
    return [words, HEAD.format("classes"), *rows]


def heads(measured: dict) -> list[str]:
    """The table of heads."""
    of = measured["heads"]
    words = (
        "\n## What the heads look at\n\nThe mean over all test sets of one seed: the weight that an ordinary image "
        f"gives to the odd one, and the odd one to itself. Even attention gives {of['even']:.3f}.\n"
        f"The last column is the accuracy when what the head gives is set to zero; with all heads it is "
        f"{percent(of['accuracy'])}, and with none {percent(of['without_any_head'])}.\n"
    )
    rows = [
        f"| {head['layer']}.{head['head']} | {head['weight_of_others_on_odd']:.3f} | "
        f"{head['weight_of_odd_on_itself']:.3f} | {percent(head['accuracy_without'])} |"
        for head in of["heads"]
    ]
    return [
        words,
        "| layer.head | others on odd | odd on itself | accuracy without |\n| --- | ---: | ---: | ---: |",
        *rows,
    ]


def examples(measured: dict) -> list[str]:
    """The figure of one set, and the table of the classes that are confused."""
    of = measured["examples"]
    *others, odd = of["classes"]
    words = (
        f"\n## One set, and the mistakes\n\n![Attention maps of each layer and head over one set of ten: nine of "
        f"{others[0]}, and one of {odd} in the last row and column.](figures/{FIGURE.name})\n\n"
        f"*One test set, {odd} among {others[0]}: what each image attends to.*\n\n"
        f"Of 10,000 sets of one seed the model is wrong in {of['mistakes']}. These pairs of classes are mistaken most "
        "often, whichever of the two is the odd one.\n"
    )
    rows = [f"| {one} and {other} | {count} |" for one, other, count in of["confused"]]
    return [words, "| classes | mistakes |\n| --- | ---: |", *rows]


def draw(measured: dict) -> None:
    """Draw the attention maps of one set, with class names on the axes."""
    of = measured["examples"]
    figure = plotting.attention_maps([np.array(layer) for layer in of["attention"]], queries=of["classes"])
    figure.savefig(FIGURE, dpi=90, metadata={"Software": None})


def page() -> str:
    """The whole page."""
    results = recorded()
    measured, made = results["measured"], results["made"]
    closing = "\n## How it was made\n\n" + "\n".join(
        f"- {name.replace('_', ' ')}: {value}" for name, value in made.items() if name != "held_out_classes"
    )
    parts = [OPENING.format(seeds=len(made["seeds"])), *methods(measured), *set_sizes(measured)]
    parts += [*held_out(measured, made), *heads(measured), *examples(measured), closing]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    draw(recorded()["measured"])
    PATH.write_text(page(), encoding="utf-8")
