# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,jupyter,-all
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Set anomaly detection
#
# **What you will build.**
# You give a Transformer ten images, nine of one class and one of another, and it finds the odd one.
# You build the sets, compare the model with a rule and with a simpler network, and check in numbers that the order of a set does not matter.
# You see what a model learns that is shown an order all the same, what its heads look at, and how far it carries: to sets of other sizes, and to classes that it never saw.
#
# **What you need to know.**
# Notebooks 01 to 03: attention, the encoder, and how the course trains and loads a model.
#
# **How long it takes.**
# Reading takes about 45 minutes.
# Running it takes about half a minute on a laptop with the checkpoint there, and under a minute more if the model is trained.
# With photographs in place of digits (the parameters `images` and `backbone`), it takes some minutes once their features are there, and half an hour or so before that; the section *Features* says more.
#
# **Notation.**
#
# | symbol | meaning |
# | --- | --- |
# | $B$ | number of sets in a batch |
# | $T$ | number of images in a set, here 10 |
# | $N$ | number of images |
# | $D$ | number of features of an image |
# | $s_t$ | score of image $t$ of a set: the higher, the more likely it is the odd one |

# %% tags=["parameters"]
from typing import Optional

profile: str = "quick"  # one of: quick, full; full is the published recipe
images: str = "digits"  # one of: digits, cifar100; the image set
backbone: str = "pixels"  # one of: pixels, resnet34, efficientnet_lite0; what turns an image into features
image_size: Optional[int] = None  # pixels on a side; None: the backbone's own
set_size: int = 10  # images in a set, the odd one included
max_epochs: Optional[int] = None  # None: as the profile says; a number always trains
checkpoint: str = "auto"  # one of: auto, required, none; whether the model is loaded
seed: int = 42  # of the fixed sets, the initial weights and the order of the batches
devices: int = 1  # of each node; they share every batch
num_nodes: int = 1  # machines
strategy: str = "auto"  # of several devices, by Lightning's names; here ddp_notebook
precision: str = "32-true"  # one of: 32-true, bf16-mixed; the second on a GPU that has it
compile_model: bool = False  # with torch.compile: slow to begin, for long training

# %% tags=["nbval-ignore-output"]
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("course_utils") is None:  # this notebook was opened alone
    repository = ""  # where the course is published
    if not repository:
        raise ModuleNotFoundError(
            "the course is not installed here: run `pip install -e .` in its folder, "
            "then restart the kernel"
        )
    # PyTorch and whatever else is there already stays as it is.
    for command in (
        ["git", "clone", "--quiet", "--depth", "1", repository, "transformer-course"],
        [sys.executable, "-m", "pip", "install", "--quiet", "-e", "transformer-course"],
    ):
        subprocess.run(command, check=True)
    sys.path.insert(0, "transformer-course")

from course_utils.welcome import welcome

welcome()

# %%
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import binomtest

from course_utils import interactive, plotting
from course_utils.anomaly import anomaly_datasets, train_anomaly
from course_utils.batches import eval_loader
from course_utils.experiments import (
    order_shortcut,
    set_anomaly_cifar100,
    set_anomaly_digits,
)
from course_utils.experiments.set_anomaly_heads import head_distances, heads
from course_utils.feature_cache import cached_features
from course_utils.images import load_images
from course_utils.machine import Machine
from course_utils.results import record
from course_utils.set_evaluation import chooser, set_accuracy
from course_utils.training import History

# %% [markdown]
# ## Sets and sequences
#
# A sequence has an order, and the order carries meaning.
# A **set** has none: $\{a, b, c\}$ and $\{c, a, b\}$ are the same set.
# A network for sets must respect that.
# If it gives each element a number, shuffling the elements may shuffle the numbers and must change nothing else: it must be *permutation-equivariant*.
#
# A recurrent network or a convolution reads its input in order and would have to learn that order is irrelevant.
# [Vinyals et al. (2015)](#Sources) show that the order in which a set is fed to a recurrent network matters a great deal.
# Attention without positional encoding has the property built in, as you measured in notebook 01, and so have the feed-forward network and the layer norm, since they treat each element on its own.
# So a Transformer becomes a network for sets by leaving something **out**: the positions ([Lee et al., 2019](#Sources)).
#
# ## The task
#
# A set holds $T$ images: $T - 1$ of one class and one of another.
# Which is the odd one?
#
# No image is odd by itself.
# A 7 is the odd one among ones and an ordinary member among sevens, so the answer depends on all the others, which is what attention is for.
# Nor does the model learn what an odd *class* looks like: every class is odd in some sets and ordinary in others.

# %% [markdown]
# ## The images
#
# Offline, the course uses 1,797 scans of handwritten digits, 8 by 8 pixels each, which come with the scikit-learn package.
# With the parameter `images` set to `cifar100` it uses CIFAR-100: 60,000 colour photographs of 100 classes, 32 by 32 pixels each ([Krizhevsky, 2009](#Sources)).
# They are downloaded once, or read from the folder that the environment variable `PATH_DATASETS` names.
#
# The images are divided into three parts: one to train on, one to choose the best model by, and one to test on in the end.
# The division is made **within each class**, so that every part has all the classes in equal proportion.
# Which image goes where depends on the images themselves, by a hash of their bytes, and not on the order in which they come.
# So it is the same division on every machine.

# %%
image_set = load_images(images)
print(
    f"{len(image_set.images):,} images of shape {image_set.images.shape[1:]} "
    f"in {len(image_set.class_names)} classes"
)
for split, indices in image_set.splits.items():
    per_class = np.bincount(image_set.labels[indices])
    print(
        f"{split:<6} {len(indices):>6,} images, "
        f"{per_class.min()} to {per_class.max()} of each class"
    )

# %% [markdown]
# ## Features
#
# The Transformer does not see images but **features**: $D$ numbers for each image, from a fixed function called the *backbone*.
# The backbone is not trained here, so its features are computed once, before training.
# For digits this small, the pixels themselves will do: $D = 64$ grey values between 0 and 1.
#
# For photographs they will not: two apples agree in hardly any pixel.
# There the backbone is a network that was trained to name the objects in the photographs of ImageNet, without its last layer.
# `resnet34` gives $D = 512$ features ([He et al., 2015](#Sources)), and the smaller `efficientnet_lite0` gives $D = 1280$ ([Tan & Le, 2019](#Sources)).
# These networks were made for larger images, so each photograph is first scaled up to the size they expect.
#
# That is a lot of work for 60,000 images, on a laptop half an hour or more, and it is done once.
# Its result stays in a file, and an extraction that is interrupted goes on where it was.
# Outside the notebook, `course features --images cifar100 --backbone efficientnet_lite0` does the same.

# %%
features = cached_features(image_set, backbone, image_size)  # [N, D]
print("features", list(features.shape))

# %% [markdown]
# ## The sets
#
# A set is made on demand.
# Set $i$ has image $i$ as the odd one.
# Another class is drawn at random, and $T - 1$ different images of it.
# The odd one always stands last, which would be an absurd thing to do for a sequence, and is harmless here: the model cannot see it.
#
# For **training**, the companions are drawn anew each time, so the model hardly ever sees the same set twice.
# For **validation and testing**, they are drawn once, from a fixed seed, so that two models are measured on the same sets.

# %%
datasets = anomaly_datasets(image_set, features, set_size, seed)
test_rows = image_set.splits["test"]  # the test images among all images
_, members, position = datasets["test"][
    0
]  # features [T, D], indices [T], position of the odd one
print("images of the first test set:", members.tolist())
print("the odd one stands at position", position)

# %%
some_sets = (
    torch.linspace(0, len(datasets["test"]) - 1, 4).long().tolist()
)  # spread over the classes
drawn = torch.stack([datasets["test"][i][1] for i in some_sets])  # [4, T]
plotting.show(
    plotting.image_sets(image_set.images[test_rows[drawn]], odd=[set_size - 1] * 4),
    alt="Four sets of ten images, one set a row. In each row nine images are of one "
    "class, and the last one, framed, is of another.",
)

# %% [markdown]
# ## A simple rule to beat
#
# Before training anything, ask what a rule without learning can do.
# The **cosine rule** calls that image odd which is the least similar to the others, on average.
# With features $x_t$ of shape $[D]$, the similarity of two images is $x_t \cdot x_u / (\|x_t\| \|x_u\|)$, the cosine of the angle between them.
#
# An angle is seen from somewhere.
# Neither pixels nor the features of a network with ReLUs are ever negative, so from zero all images lie in much the same direction.
# From their mean $\mu$ they lie in all directions: there the rule compares $x_t - \mu$ with $x_u - \mu$.
# The mean is that of the training images, since nothing may be learned from the test images, not even this.


# %%
def cosine_rule(sets, centre):
    """The image of each set [N, T, D] that is least similar to the others: positions [N]."""
    direction = F.normalize(sets - centre, dim=-1)
    similarity = direction @ direction.transpose(1, 2)  # [N, T, T]
    return similarity.sum(dim=-1).argmin(
        dim=-1
    )  # the similarity with itself is 1 for each, and changes nothing


test_batches = eval_loader(datasets["test"], batch_size=500)
mean = features[image_set.splits["train"]].mean(dim=0)  # [D]
cosine_accuracy = {}
for name, centre in (("zero", 0.0), ("the mean", mean)):
    hits = [cosine_rule(sets, centre) == positions for sets, _, positions in test_batches]
    cosine_accuracy[name] = torch.cat(hits).float().mean().item()
record("guessing_acc", 1 / set_size)
record("cosine_acc_from_zero", cosine_accuracy["zero"])
record("cosine_acc", cosine_accuracy["the mean"])

# %% [markdown]
# Seen from the mean, the rule is better.
# It is far better than guessing, and wrong in a good part of the sets: two images of one class can differ more than two of different classes.
#
# ## The predictor
#
# `AnomalyPredictor` is the `TransformerPredictor` again, with three choices that suit sets:
#
# - It adds **no positional encoding**.
# - It predicts **one number for each image**, its score $s_t$.
# - The softmax runs **over the images of the set**, so the scores compete: $p_t = e^{s_t} / \sum_u e^{s_u}$ is the probability that image $t$ is the odd one. The loss is $-\log p_t$ of the image that is.
#
# The softmax of a classifier runs over a fixed list of classes.
# This one runs over whatever images are in the set, and works for any number of them.
#
# For CIFAR-100 seen through `efficientnet_lite0` the course has a model that knows more: the hundred classes themselves.
# Two small classifiers, fitted to the training images and then fixed, say how likely image $t$ is of class $c$: $p_t(c)$.
# If image $i$ is the odd one among images of class $c$, then each of the others is of class $c$ and image $i$ is not, which has the probability $(1 - p_i(c)) \prod_{j \neq i} p_j(c)$.
# The logarithm of its sum over the classes is the score of the **posterior rule**, and the Transformer, which sees the $p_t(c)$, adds a correction to it.

# %% tags=["nbval-ignore-output"]
history = History()
model, accuracy = train_anomaly(
    images=images,
    backbone=backbone,
    image_size=image_size,
    set_size=set_size,
    profile=profile,
    checkpoint=checkpoint,
    max_epochs=max_epochs,
    seed=seed,
    callbacks=[history],
    machine=Machine(
        devices, num_nodes, strategy, precision=precision, compile=compile_model
    ),
)
if history.train_loss:  # it was trained, not loaded
    plotting.show(
        plotting.learning_curves(**history.curves, loss_unit="nats a set"),
        alt="Three panels against the optimizer step: the loss falls, the learning rate "
        "climbs and decays, and the validation accuracy rises.",
    )

# %%
correct = round(accuracy["test_acc"] * len(datasets["test"]))
interval = binomtest(correct, len(datasets["test"])).proportion_ci(method="wilson")
print(f"{'guessing':<32} {1 / set_size:>7.1%}")
for name, share in cosine_accuracy.items():
    print(f"{'cosine rule, seen from ' + name:<32} {share:>7.1%}")
for split in ("train", "val", "test"):
    if f"{split}_acc" in accuracy:  # the published model was validated on other images
        print(f"{'Transformer, ' + split:<32} {accuracy[split + '_acc']:>7.1%}")
print(f"95 % interval of the test accuracy: {interval.low:.1%} to {interval.high:.1%}")
for name in ("train_acc", "val_acc", "test_acc"):
    if name in accuracy:
        record(name, accuracy[name])

# %%
if (images, backbone) == ("cifar100", "efficientnet_lite0"):
    # Measured once, with three seeds of the test sets.
    measured = set_anomaly_cifar100.recorded()["measured"]
    results = {
        **measured["methods"],
        "DeepSets on class evidence": measured["deep_sets"]["test"],
    }
    for size, methods in measured["set_sizes"].items():
        results |= {f"{name}, {size} images": value for name, value in methods.items()}
    for kind in ("seen", "unseen"):
        for name in ("cosine rule", "class evidence and posterior rule"):
            results[f"{name}, {kind} classes"] = measured["held_out"][kind][name]
    for name, result in results.items():
        bounds = " to ".join(f"{bound:.1%}" for bound in result.get("interval_95", []))
        print(f"{name:<52} {result['accuracy']:>7.1%}  {bounds}")
    for entry in measured["heads"]["heads"]:
        print(
            f"layer {entry['layer']} head {entry['head']}: "
            f"weight of the others on the odd one {entry['weight_of_others_on_odd']:.3f}, "
            f"accuracy without this head {entry['accuracy_without']:.2%}"
        )

# %% [markdown]
# Each image of a split is asked for in one set, or in several where there are few images, until there are at least 2,000 sets.
# The interval (by Wilson's method) says how much of the test accuracy may be luck of the draw.
# It counts images and not sets, because sets that ask for the same image are not independent: more sets of the same few images do not make a sample larger.
#
# The published model for this task, on CIFAR-100 with features of a ResNet-34, reaches 94.30 % on its test set.
# Digits cannot be compared with that: a hundred classes of colour photographs are harder.
# With `images` set to `cifar100` you measure on the same test images, on sets that are drawn in the same way.
# Only the published *test* accuracy compares: its authors validated on other training images than this course does.
#
# For the model that knows the classes, compare the row of the posterior rule with that of the Transformer, and the accuracy without each head with that of the whole.
# What the classifiers and the rule know already, attention need not find out: the gain over the published model is owed to them.
# `docs/set_anomaly_log.md` tells how that model was chosen, and what did not work.

# %% [markdown]
# ## Is it attention that does it?
#
# **Claim.** On the same features, attention beats simple baselines.
#
# It would be refuted by a baseline whose accuracy lies in the interval of the Transformer's.
#
# The cosine rule learns nothing, so it is a low bar.
# A higher one is **DeepSets**, the simplest network for sets ([Zaheer et al., 2017](#Sources)).
# It maps each image by itself to a vector $h_t$, takes the mean of these over the set, and gives $h_t$ and the mean to a second network, which returns the score $s_t$.
# It is permutation-equivariant like the Transformer.
# But all that an image learns of the others is one vector, the same for every image, while attention lets each image ask for what it needs.
#
# The two networks have about as many parameters, take as many steps on sets that are drawn in the same way, and have the same dropout.
# The Transformer has the learning rate of its recipe, DeepSets the best of a grid around it, chosen on the validation images; each is trained with three seeds.
# These are digits, whatever the parameter `images` says, and the last model of each run, not the best by validation.
# The cell reads the results from a file and trains one DeepSets anew.

# %%
digits_measured = set_anomaly_digits.recorded()["measured"]
methods = digits_measured["methods"]
for name, result in methods.items():
    low, high = result.get("interval_95", [result["accuracy"]] * 2)
    runs = "  ".join(f"{value:.1%}" for value in result.get("of_each_run", []))
    size = f"{result['parameters']:,} parameters" if "parameters" in result else ""
    print(
        f"{name:<12} {result['accuracy']:>6.1%}  ({low:.1%} to {high:.1%})  {size:<18} {runs}"
    )
plotting.show(
    plotting.intervals(
        {
            name: {"": (result["accuracy"], *result["interval_95"])}
            for name, result in methods.items()
            if "interval_95" in result
        },
        xlabel="share of test sets whose odd one is found (95 % interval; a tick for each seed)",
        ylabel="method",
        runs={name: methods[name]["of_each_run"] for name in set_anomaly_digits.NETWORKS},
    ),
    alt="Accuracy of three methods with intervals. The cosine rule lies clearly below; "
    "DeepSets and the Transformer lie together near 1, and their intervals coincide.",
)

# %% tags=["trained"]
digit_features, digit_labels, digit_splits = set_anomaly_digits.digits()
deep_sets = set_anomaly_digits.trained(
    "DeepSets",
    digit_features,
    digit_labels,
    digit_splits["train"],
    lr=methods["DeepSets"]["rate"],
    seed=seed,
)
again = set_accuracy(
    set_anomaly_digits.choose(deep_sets), digit_features, digit_labels, digit_splits["test"]
)
print(f"DeepSets, seed {seed}: {again.accuracy:.1%}; in the file: see above")
record("deep_sets_acc", again.accuracy)

# %% [markdown]
# Both networks beat the rule by far, and neither beats the other: half of the claim is refuted.
# On digits, the mean over the set says enough.
# Nine images of one class have a mean that tells the class, and the odd one is what does not agree with it; no image needs to ask for anything in particular.
#
# Does attention pay on harder images?
# On the photographs of CIFAR-100, DeepSets on the same class probabilities stays well below the Transformer, as the table of that image set shows.
# But the Transformer there is given the posterior rule to start from and DeepSets is not, and the rule alone does as well.
# So it is the rule that wins, and not attention.
#
# What this does not show: that attention is of no use for sets.
# With nearly all sets right there is no room left for one network to be better than the other, and a set with several kinds of odd images could not be told by its mean.
# It shows that this task, which is used to teach attention, does not need it.

# %% [markdown]
# ## The order does not matter
#
# **Claim.** Shuffle the images of a set, and the scores are shuffled with them and otherwise unchanged.
#
# It would be refuted by a score that changes by more than rounding.

# %%
generator = torch.Generator().manual_seed(seed)
order = torch.randperm(set_size, generator=generator)


def scores_of_test_sets(order, add_positional_encoding=False):
    """The score of each image of the test sets [N, T], whose images are first put into an order."""
    with torch.no_grad():
        batches = [
            model(sets[:, order], add_positional_encoding=add_positional_encoding)
            for sets, _, _ in test_batches
        ]
    return torch.cat(batches).squeeze(-1)


unshuffled = torch.arange(set_size)
scores = scores_of_test_sets(unshuffled)
shuffled = scores_of_test_sets(order)
with_positions = scores_of_test_sets(unshuffled, add_positional_encoding=True)
with_positions_shuffled = scores_of_test_sets(order, add_positional_encoding=True)
change = (shuffled - scores[:, order]).abs().max().item()
print("the scores follow the shuffle, equal to 1e-3:", change < 1e-3)
record(
    "score_change_with_positions",
    (with_positions_shuffled - with_positions[:, order]).abs().max(),
)

# %% [markdown]
# The scores follow the shuffle.
# With positional encoding they would not, as the second number shows: it is the largest change of a score when the same model is given positions.
#
# ## An order that is learnt all the same
#
# The odd one always stands last, and you read above that this is harmless.
# It is harmless *because* the model adds no positions.
#
# **Claim.** A model that is told positions learns the place and not the image.
#
# It would be refuted by a model that is trained with positions, the odd one always last, and finds the odd one elsewhere as well.
# Each model below is trained on digits, and then tested on sets in which the odd one changes places with another image.
# The cell trains one of them, for a hundred steps, and reads the rest from a file: three seeds each.

# %% tags=["trained"]
shortcut = order_shortcut.order_shortcut(
    "positions, odd one always last", seed=seed, steps=order_shortcut.FEW_STEPS
)
record("shortcut_acc_last", shortcut["accuracy_last"])
record("shortcut_acc_any_place", np.mean(shortcut["accuracy_at"]))

# %%
order_measured = order_shortcut.recorded()["measured"]
print(f"{'':<34} {'last':>6}  {'mean over all places':>20}")
for arm in order_shortcut.ARMS:
    of_seeds = order_measured[arm]["runs"]
    last = np.mean([run["accuracy_last"] for run in of_seeds])
    anywhere = np.mean([run["accuracy_at"] for run in of_seeds])
    print(f"{arm:<34} {last:>6.1%}  {anywhere:>20.1%}")
plotting.show(
    plotting.panels_over_runs(
        {
            "": (
                range(1, order_shortcut.SET_SIZE + 1),
                {
                    arm: [run["accuracy_at"] for run in order_measured[arm]["runs"]]
                    for arm in order_shortcut.ARMS
                },
            )
        },
        xlabel="place of the odd one in the test",
        ylabel="accuracy",
        reference=(1 / order_shortcut.SET_SIZE, "guessing"),
        ylim=(-0.03, 1.05),
    ),
    alt="Accuracy against the place of the odd one, three models. The one that was told "
    "positions and always found the odd one last is right only at the last place and "
    "nowhere else. The other two are right nearly always, wherever the odd one stands.",
)

# %% [markdown]
# The model that was told positions says "the last one", whatever it is shown.
# In the test with the odd one last it is perfect, better than any model that looks at the images.
# At every other place it is not just as poor as guessing but wrong each time; over all places together it is right as often as guessing is.
# A hundred steps suffice, a small part of what it takes to learn the task, and the steps after them do not mend it: once the loss is near zero there is nothing left to learn from.
#
# The test accuracy gives no warning, for the test sets have the same order as the training sets.
# Such a rule that works on the data one has, for a reason that will not hold elsewhere, is called a **shortcut**.
# The third line shows that the fault is not in positions alone: with positions and the odd one at a random place the model learns the task as well as without positions.
# It was the order of the data, together with a model that can see it.
#
# What this does not show: that every shortcut is found by moving something.
# This one was easy to find because you knew where to look.

# %% [markdown]
# ## Where the model looks
#
# The maps below are those of one test set, each layer a row and each head a column.
# A row of a map tells what the image on the left attends to.
# The odd one is framed.

# %%
example = datasets["test"][some_sets[1]]
attention = model.get_attention_maps(
    example[0][None], add_positional_encoding=False
)  # a list of [1, H, T, T]
plotting.show(
    plotting.attention_over_images(
        [layer[0] for layer in attention],
        image_set.images[test_rows[example[1]]],
        odd=example[2],
    ),
    alt="Attention maps of each layer and head over the images of one set, with the "
    "images on both axes. The maps of the first layer are nearly even. In the last "
    "layer, columns stand out, among them that of the odd one.",
)

# %% [markdown]
# The next cell shows the same maps to look into.
# Mask the odd one, and see to whom its weight goes.

# %%
interactive.show(
    interactive.attention_explorer(
        [layer[0] for layer in attention],
        tokens=[*(f"image {t}" for t in range(1, set_size)), "the odd one"],
        thumbnails=image_set.images[test_rows[example[1]]],
        alt="The same maps, to look into: choose a layer, a head and an image to see its "
        "weights, and mask images to see the others renormalise.",
    )
)


# %%
def attention_of_others_on_odd(model, batches):
    """Mean weight that an ordinary image gives to the odd one, the last: [layers, H]."""
    of_sets = []
    for sets, _, _ in batches:
        maps = model.get_attention_maps(sets, add_positional_encoding=False)
        of_sets.append(torch.stack([layer[:, :, :-1, -1].mean(dim=2) for layer in maps], 2))
    return torch.cat(of_sets).mean(dim=0).T  # [N, H, layers] -> [layers, H]


on_odd = attention_of_others_on_odd(model, test_batches)
for layer, weights in enumerate(on_odd.tolist(), start=1):
    print(
        f"layer {layer}: "
        + "  ".join(
            f"head {head}: {weight:.3f}" for head, weight in enumerate(weights, start=1)
        )
    )
record("least_attention_on_odd", on_odd.min())
record("most_attention_on_odd", on_odd.max())
layer, head = divmod(int(on_odd.argmax()), on_odd.size(1))
print(f"the head that singles the odd one out most: layer {layer + 1}, head {head + 1}")

# %% [markdown]
# One picture can mislead, so the table gives the mean over all test sets: how much weight an ordinary image gives to the odd one.
# Even attention would be $1/T$, one tenth for sets of ten.
# A head near that does not tell the odd one from the others; a head well above it singles it out.
# In the small model for digits the heads of the first layer are all near it: they gather what the second layer needs to tell who is odd.
# Which head does the work is an accident of training; another seed gives another division of labour.
#
# ## Do the heads look at different things?
#
# That heads "look at different things" is often said and seldom measured.
# Two questions are in it: do their maps differ, and does it matter?
#
# **How far apart are two maps?**
# Take the rows of two heads for the same query, and ask what share of the weight would have to move to turn one row into the other: half the sum of the absolute differences.
# That is 0 for equal rows and 1 for rows that have no key in common.
# The number in a cell is the mean over queries and test sets.
#
# A distance needs a yardstick.
# The last column is the distance of a head from *itself*, between one set and another, whose images have nothing to do with each other.
# If two heads looked at the same things, their maps of one set would lie far closer together than that.
# The claim would be refuted by such distances, and by heads that can be removed at no cost.
#
# **What does removing a head cost?**
# The output of a head is set to zero, and the accuracy measured again, without any training.

# %%
labels = torch.from_numpy(image_set.labels)
rows = torch.from_numpy(test_rows)
apart = head_distances(model, features, labels, rows, set_size)
between, other_set = np.array(apart["between"]), np.array(apart["other_set"])
plotting.show(
    plotting.distances(
        between,
        apart["heads"],
        label="share of the weight that differs",
        axis="head",
        yardstick=other_set,
    ),
    alt="Distances between the maps of any two heads as a square of numbers, 0 on the "
    "diagonal. Heads of the first layer lie close together, those of the last layer far "
    "apart. A column beside it has the distance of each head from itself on another set, "
    "about as large as its distance from other heads of its layer.",
)
in_last_layer = slice(-model.hparams.num_heads, None)
pairs_of_last_layer = between[in_last_layer, in_last_layer]
upper = np.triu_indices(model.hparams.num_heads, k=1)
record("head_distance_last_layer", pairs_of_last_layer[upper].mean())
record("head_distance_other_set", other_set[in_last_layer].mean())

# %%
without = heads(model, features, labels, rows, set_size)
print(f"accuracy of the whole model: {without['accuracy']:.2%}")
print("layer  head  others on odd  odd on itself  accuracy without")
for entry in without["heads"]:
    print(
        f"{entry['layer']:>5} {entry['head']:>5} {entry['weight_of_others_on_odd']:>14.3f} "
        f"{entry['weight_of_odd_on_itself']:>14.3f} {entry['accuracy_without']:>17.2%}"
    )
most_on_odd = max(without["heads"], key=lambda entry: entry["weight_of_others_on_odd"])
costliest = min(without["heads"], key=lambda entry: entry["accuracy_without"])
for does, entry in {"looks there most": most_on_odd, "costs most": costliest}.items():
    print(
        f"the head that {does} is {entry['layer']}.{entry['head']}: "
        f"weight {entry['weight_of_others_on_odd']:.3f}, "
        f"its removal costs {without['accuracy'] - entry['accuracy_without']:.2%}"
    )
record("acc_without_worst_head", costliest["accuracy_without"])
record("acc_without_any_head", without["without_any_head"])
record("head_that_looks_costs", without["accuracy"] - most_on_odd["accuracy_without"])

# %% [markdown]
# One model is one accident.
# The next cell reads the same measurements on digits for three models that were trained with other seeds.

# %%
for number, of_model in enumerate(digits_measured["heads"], start=1):
    pair_distances = np.array(of_model["distances"]["between"])
    own = np.array(of_model["distances"]["other_set"])
    for layer in (0, 1):
        of_layer = slice(4 * layer, 4 * layer + 4)
        pair_mean = pair_distances[of_layer, of_layer][np.triu_indices(4, k=1)].mean()
        losses = [
            of_model["accuracy"] - entry["accuracy_without"]
            for entry in of_model["heads"][of_layer]
        ]
        print(
            f"model {number}, layer {layer + 1}: two heads on a set {pair_mean:.2f}, a head on "
            f"two sets {own[of_layer].mean():.2f}; removing one costs "
            + ", ".join(f"{100 * loss:.1f}" for loss in losses)
            + " points"
        )
    print(f"model {number} without any head: {of_model['without_any_head']:.1%}")

# %% [markdown]
# In the last layer, two heads differ on one set about as much as a head's maps of two unrelated sets do: there they look at different images.
# In the first layer all distances are small, and the yardstick too: the maps are nearly even, so there is little to differ in.
#
# What removing one costs is another matter.
# Most heads can be removed at hardly any cost, so the others make up for it; take all away and little is left.
# The two last lines of the table name the head that looks at the odd image most, and the one that costs most.
# In the committed model for digits and in the three others they are different heads: the first can go at hardly any cost, and the weight of the second on the odd one is so near to even that you would have passed it over in the maps.
# A map shows where a head looks, and not what the rest of the network makes of it.
#
# What this does not show: what a head does.
# Two heads may lie far apart because one is sharp and one is even, and not because they look for different things.
# And a cost is that of a removal without training: a model that is trained without the head may do as well.

# %% [markdown]
# ## The hardest sets
#
# What does the model find hard?
# Take one set for each test image, the first draw of those that the accuracy was measured on.
# The rows below are the four of them in which the model gives the odd one the lowest probability; below each image stands the probability that it is the odd one.
# Where another image has a higher one than the framed one, the model is wrong.

# %%
probabilities = scores.softmax(dim=-1)  # [N, T]
of_odd = probabilities[:, -1]
hardest = of_odd.argsort()[:4]
_, hardest_members, _ = datasets["test"].__getitems__(hardest).tensors  # [4, T]
captions = [[f"{value:.0%}" for value in row] for row in probabilities[hardest].tolist()]
plotting.show(
    plotting.image_sets(
        image_set.images[test_rows[hardest_members]],
        odd=[set_size - 1] * 4,
        captions=captions,
    ),
    alt="The four test sets that the model finds hardest, one a row, with the probability "
    "of each image below it. In some, an ordinary image that looks unlike its class gets "
    "more probability than the framed odd one.",
)
names = image_set.class_names
test_labels = image_set.labels[test_rows]
for row, (index, members) in enumerate(
    zip(hardest.tolist(), hardest_members, strict=True), start=1
):
    odd_name, other_name = names[test_labels[members[-1]]], names[test_labels[members[0]]]
    print(
        f"set {row}: {odd_name} among {other_name}; "
        f"probability of the odd one {of_odd[index]:.0%}"
    )
wrong = (probabilities.argmax(dim=-1) != set_size - 1).nonzero().flatten()
record("mistakes", len(wrong))

# %% [markdown]
# Look at the images: would you have found the odd one?
# Where the model is wrong it is often because one of the others looks odder than the odd one: a digit that is badly written, or a photograph that shows more than its class says.
#
# With digits, the next cell lets you play against the model.
# Four of the eight sets are the ones above, and four are spread over the test set; the images of each are shuffled.
# So the model's score here says nothing about its accuracy: half of the sets were chosen because it is worst at them.

# %%
if images == "digits":
    spread = torch.linspace(0, len(of_odd) - 1, 4).long()
    played = torch.cat([hardest, spread])  # [8]
    _, played_members, odd_places = datasets["test"].__getitems__(played.tolist()).tensors
    interactive.show(
        interactive.odd_one_out_game(
            image_set.images[test_rows[played_members]],
            odd_places,
            probabilities[played],
            seed=seed,
        )
    )

# %% [markdown]
# Which classes does it confuse?
# The table counts the mistakes by the two classes of the set, whichever of them was the odd one.

# %%
_, wrong_members, _ = datasets["test"].__getitems__(wrong).tensors  # [mistakes, T]
pairs = Counter(
    " and ".join(sorted((names[odd], names[other])))
    for other, odd in test_labels[wrong_members[:, [0, -1]]]
)
for pair, count in pairs.most_common(10):
    print(f"{count:>4}  {pair}")

# %% [markdown]
# ## Sets of other sizes
#
# **Claim.** A model that was trained on sets of ten finds the odd one in smaller and in larger sets too.
#
# Nothing in it fixes the size: neither attention nor the softmax over the images has a weight for each place.
# That it *can* be asked does not mean that it answers well, since it never saw such sets.
# The claim would be refuted by an accuracy that falls to the cosine rule's.
#
# Guessing is right once in $T$ times, so a larger set is harder to guess; but a larger set also shows more of its class.
# The first cell measures the model that you have here.
# The figure shows three models of each kind on digits, and on the right what was measured on photographs.

# %% tags=["trained"]
print(f"{'images in a set':>15}  accuracy")
accuracy_at_size = {
    size: set_accuracy(chooser(model), features, labels, rows, size, seeds=(0,)).accuracy
    for size in set_anomaly_digits.SET_SIZES
}
for size, share in accuracy_at_size.items():
    print(f"{size:>15}  {share:.1%}")
record("acc_sets_of_5", accuracy_at_size[5])
record("acc_sets_of_20", accuracy_at_size[20])

# %%
cifar100_measured = set_anomaly_cifar100.recorded()["measured"]
digit_sizes = set_anomaly_digits.SET_SIZES
photograph_sizes = [int(size) for size in cifar100_measured["set_sizes"]]
panels = {
    "digits": (
        digit_sizes,
        {
            name: np.array([of_size[str(size)] for size in digit_sizes]).T
            for name, of_size in digits_measured["set_sizes"].items()
        },
    ),
    "photographs (CIFAR-100)": (
        photograph_sizes,
        {
            name: [
                cifar100_measured["set_sizes"][str(size)][method]["accuracy"]
                for size in photograph_sizes
            ]
            for name, method in (
                ("cosine rule", "cosine rule"),
                ("Transformer", "Transformer on class evidence"),
            )
        },
    ),
}
for sizes, of_panel in panels.values():
    of_panel["guessing"] = 1 / np.array(sizes)
plotting.show(
    plotting.panels_over_runs(
        panels, xlabel="images in a set", ylabel="accuracy", ylim=(0, 1.05)
    ),
    alt="Accuracy against the number of images in a set, digits left, photographs right. "
    "On digits the two networks stay near 1 at every size, and the cosine rule falls "
    "slightly. On photographs the Transformer falls slowly and the cosine rule faster.",
)

# %% [markdown]
# The networks answer for sets of half and of twice the size about as well as for those that they were trained on.
# The cosine rule gets slowly worse, since among more images there is more often one that looks odd without being it.
#
# What this does not show: that any size will do.
# The sizes are within a factor of two of the one in training, and the larger the sets, the fewer images there are to draw them from.
#
# ## Classes that it never saw
#
# **Claim.** The model finds the odd one among classes that were not in training, if less well.
#
# That would mean it has learnt to compare, and not only to recognise the classes it was shown.
# It would be refuted by an accuracy no better than the cosine rule's on the same sets.
#
# Three of the ten digits are held out, a model is trained on the other seven, and is tested on sets that are made of the three alone.
# There are three choices of the three, one model each.
# Beside it stands the model that was trained on all ten, on the very same sets: the difference between the two is what it is worth to have seen a class.

# %%
unseen = digits_measured["unseen"]
kinds = {
    "Transformer": "Transformer that never saw them",
    "Transformer that saw them": "Transformer that saw them",
    "cosine rule": "cosine rule",
}
plotting.show(
    plotting.intervals(
        {
            ", ".join(map(str, choice["held_out"])): {
                label: (choice[kind]["accuracy"], *choice[kind]["interval_95"])
                for kind, label in kinds.items()
            }
            for choice in unseen
        },
        xlabel="accuracy on sets of the held-out digits (95 % interval)",
        ylabel="digits held out",
        reference=(1 / order_shortcut.SET_SIZE, "guessing"),
    ),
    alt="Accuracy on sets of held-out digits for three choices of them. The Transformer "
    "that saw these digits is near 1, the cosine rule lies below, and the Transformer "
    "that never saw them lowest, at about half, still far above guessing.",
)
for kind, label in kinds.items():
    of_choices = [choice[kind]["accuracy"] for choice in unseen]
    print(
        f"{label:<32} {np.mean(of_choices):.1%}, "
        f"from {min(of_choices):.1%} to {max(of_choices):.1%}"
    )
seen = [choice["on classes seen"]["accuracy"] for choice in unseen]
print(f"{'on the seven that it saw':<32} {np.mean(seen):.1%}")
record(
    "unseen_acc_committed",
    np.mean([choice["Transformer"]["accuracy"] for choice in unseen]),
)
for kind in ("seen", "unseen"):
    held_out = cifar100_measured["held_out"][kind]
    print(f"photographs, sets of {held_out['classes']} classes {kind} in training:")
    for method in ("cosine rule", "class evidence and posterior rule"):
        low, high = held_out[method]["interval_95"]
        print(
            f"  {method:<34} {held_out[method]['accuracy']:.1%} ({low:.1%} to {high:.1%})"
        )

# %% [markdown]
# The claim is refuted.
# On classes that it never saw the Transformer is far better than guessing, and worse than the cosine rule, which has learnt nothing.
# On those that it did see it is right nearly always.
# Nobody told it the classes, but the cheapest way to find the odd one among seven kinds of digits is to tell the seven apart, and that is what it has learnt.
# Asked about an eighth kind, it sees what it knows in it, and sorts images of one class into several.
#
# On photographs the comparison comes out differently: the model and the cosine rule are about as good on unseen classes, with intervals that overlap.
# There the features come from a network that was trained on ImageNet, which holds classes like those of CIFAR-100.
# *Unseen* is then said of what is trained here alone, and not of the features.
# With a hundred classes, a new one also has more relatives among those that were seen.
#
# What this does not show: that a set model cannot learn to compare.
# Seven classes of little more than a hundred images each are few to learn it from.
# And three choices of one model each give a range, and no more.

# %% [markdown]
# ## Recap
#
# - A Transformer without positional encoding is a network for sets.
# - The softmax runs over the elements of the set, so the same model works for sets of any size.
# - Training sets are drawn anew each time; evaluation sets are fixed by a seed.
# - A simple rule belongs beside every model, and an interval beside every accuracy.
# - Equivariance is exact up to rounding, and one positional encoding would destroy it.
# - A model that can see an order will use it, and a test in the same order will not tell you.
# - On digits DeepSets does as well as attention, and both work for other set sizes.
# - A model that finds the odd one among the classes it saw may do worse than a rule among those that it did not.
# - Heads of the last layer look at different images; which of them matters, their maps do not say.

# %% [markdown]
# ## Exercises
#
# Each exercise has a check below it, which runs your answer on small and large inputs.
# If something is wrong, the check shows the smallest input that shows it, and names the mistake if it knows it.
# The hints are folded: open one at a time, and only when you are stuck.

# %%
from course_utils import checks

# %% tags=["course-only"]
checks.keep_progress(False)  # the answers here are the course's own

# %% [markdown] tags=["exercise"]
# ### Exercise 4.1: The loss of the odd one
#
# *(medium, 10 minutes)*
# Write `my_odd_loss(scores, positions)`, the mean of $-\log p_t$ over the sets of a batch, as a tensor without axes.
# `scores` is $[B, T]$, one number for each image, and `positions` is $[B]$: where the odd one stands.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# The formula of $p_t$ stands in *The predictor*.
# Over what does its sum run?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# It is the loss of a classifier whose classes are the places in the set.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `F.cross_entropy` takes a table of scores, one row for each case, and the number of the right column of each row.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_odd_loss(scores, positions):
    """Mean of -log p of the odd one, from scores [B, T] and positions [B]."""
    return F.cross_entropy(scores, positions)


# %% tags=["check"]
checks.odd_one_loss(my_odd_loss)

# %% [markdown] tags=["exercise"]
# ### Exercise 4.2: The odd one without learning
#
# *(medium, 15 minutes)*
# Write `my_odd_one(sets, centre)`, a rule without learning: the image whose cosine similarities with the *others* of its set have the smallest sum.
# `sets` is $[N, T, D]$ and `centre` is $[D]$; the cosine is that of the angle as seen from the centre.
# The result is $[N]$, positions from 0 to $T-1$.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# First move the centre to 0, then bring each image to length 1.
# Then the cosine of two images is their dot product.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# A product of matrices gives the similarity of each image with each, $[N, T, T]$.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Each image's similarity with itself is 1, so it may stay in the sum: it changes no comparison.
# Do you want the largest or the smallest sum?
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_odd_one(sets, centre):
    """Position [N] of the image of each set [N, T, D] that is least similar to the others."""
    direction = F.normalize(sets - centre, dim=-1)
    similarity = direction @ direction.transpose(1, 2)  # [N, T, T]
    return similarity.sum(dim=-1).argmin(dim=-1)


# %% tags=["check"]
checks.least_similar(my_odd_one)

# %% [markdown] tags=["exercise"]
# ### Exercise 4.3: The mean of sets of different sizes
#
# *(medium, 10 minutes)*
# Sets of different sizes share a batch by padding, and simple networks for sets, such as DeepSets, take the mean over a set.
# Write `my_set_mean(x, token_mask)`: the mean over the real images of each set.
# `x` is $[B, T, D]$, and `token_mask` is boolean, $[B, T]$, True where an image is real.
# The result is $[B, D]$, with zeros for a set without any real image; the padding may hold anything, even NaN.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# A mean is a sum divided by a number.
# Which of the two does padding spoil?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# What is 0 times NaN?
# Write zeros over the padding rather than multiplying by 0.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `masked_fill` needs a mask that broadcasts to $[B, T, D]$, and `clamp(min=1)` keeps a number from being 0.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_set_mean(x, token_mask):
    """Mean [B, D] over the real images of sets [B, T, D]; zeros for an empty set."""
    total = x.masked_fill(~token_mask[..., None], 0.0).sum(dim=1)
    return total / token_mask.sum(dim=1, keepdim=True).clamp(min=1)


# %% tags=["check"]
checks.set_mean(my_set_mean)

# %% [markdown] tags=["exercise"]
# ### Exercise 4.4: The loss of one who guesses
#
# *(easy, 5 minutes)*
# Before it has learned anything, a model gives all ten images of a set about the same score.
# What is its loss, in nats a set?

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# What probability does each image get if all scores are equal?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The loss is $-\log$ of the probability of the odd one.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The unit is nats, so the logarithm is the natural one, `math.log`.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
import math

guessing_loss = -math.log(1 / 10)

# %% tags=["check"]
checks.guessing_loss(guessing_loss)

# %% [markdown] tags=["exercise"]
# ### Exercise 4.5: A perfect score, and nothing learned
#
# *(medium, 5 minutes)*
# A model is trained *with* positional encoding on sets whose odd one always stands last.
# It is right on all new sets of this kind; when the odd one is moved to another place, it is wrong every time, as you saw in *An order that is learnt all the same*.
# What has it learned?
#
# - **a** It has learned the training images by heart.
# - **b** It has learned to answer with the last place, whatever the images show.
# - **c** It has learned the task, and cannot apply it to places that it has not seen in training.
# - **d** It has learned little, because the positions drown the features.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# What could a model do that never looks at an image?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Which places have an encoding that it has not seen?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The course's own model is trained on the same sets.
# What is it not given, and what does that make impossible for it?
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
learned_the_place = "b"

# %% tags=["check"]
checks.learned_the_place(learned_the_place)

# %% [markdown]
# ### Further
#
# These are small experiments without a check.
#
# 1. *(easy, 10 minutes)* How well does the cosine rule do if the mean feature of the set is subtracted from each image first?
# 2. *(medium, 20 minutes)* With few mistakes, the table of confused classes is mostly chance. Draw the test sets with ten other seeds and count again: which pairs of digits stay?
# 3. *(medium, 20 minutes)* Give the model sets in which *no* image is odd. What do the probabilities look like? What would you add to the model so that it can say "none"?
# 4. *(hard, 40 minutes)* Build sets with *two* odd ones, both of the same other class. What does the model that you have say of them, and which loss would you train a better one with?
#
# <a id="Sources"></a>
# ## Sources
#
# - P. Lippe. *Tutorial 6: Transformers and Multi-Head Attention.* UvA Deep Learning Tutorials. The task, the recipe of the full profile and the published accuracies.
# - O. Vinyals, S. Bengio, M. Kudlur (2015). *Order Matters: Sequence to sequence for sets.* arXiv:1511.06391.
# - J. Lee, Y. Lee, J. Kim, A. R. Kosiorek, S. Choi, Y. W. Teh (2019). *Set Transformer: A Framework for Attention-based Permutation-Invariant Neural Networks.* ICML.
# - M. Zaheer, S. Kottur, S. Ravanbakhsh, B. Póczos, R. Salakhutdinov, A. J. Smola (2017). *Deep Sets.* NeurIPS. The simplest networks for sets.
# - E. Alpaydin, C. Kaynak (1998). *Optical Recognition of Handwritten Digits.* UCI Machine Learning Repository. The digits.
# - A. Krizhevsky (2009). *Learning Multiple Layers of Features from Tiny Images.* Technical report, University of Toronto. CIFAR-100.
# - K. He, X. Zhang, S. Ren, J. Sun (2015). *Deep Residual Learning for Image Recognition.* arXiv:1512.03385. ResNet-34.
# - M. Tan, Q. Le (2019). *EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks.* ICML. EfficientNet-Lite0 is a variant of its smallest network.
# - E. B. Wilson (1927). *Probable Inference, the Law of Succession, and Statistical Inference.* Journal of the American Statistical Association. The interval.
