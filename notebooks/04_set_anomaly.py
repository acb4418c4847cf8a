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
# You build the sets, compare the model with a simple rule, check in numbers that the order of a set does not matter, and look at its attention and at its mistakes.
#
# **What you need to know.**
# Notebooks 01 to 03: attention, the encoder, and how the course trains and loads a model.
#
# **How long it takes.**
# Reading takes about 30 minutes.
# Running it takes about ten seconds on a laptop with the checkpoint there, and under a minute more if the model is trained.
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

# %%
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import binomtest

from course_utils import plotting
from course_utils.anomaly import anomaly_datasets, train_anomaly
from course_utils.batches import eval_loader
from course_utils.feature_cache import cached_features
from course_utils.images import load_images
from course_utils.results import record
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
)
if history.train_loss:  # it was trained, not loaded
    plotting.show(
        plotting.learning_curves(
            history.train_loss,
            history.learning_rate,
            history.val_step,
            history.val_acc,
            loss_unit="nats a set",
        ),
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
    from course_utils.experiments.set_anomaly_cifar100 import recorded

    measured = recorded()["measured"]  # once, with three seeds of the test sets
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


# %%
def attention_of_others_on_odd(model, batches):
    """Mean weight that an ordinary image gives to the odd one, the last: [layers, H]."""
    of_sets = []
    for sets, _, _ in batches:
        maps = model.get_attention_maps(sets, add_positional_encoding=False)
        of_sets.append(torch.stack([layer[:, :, :-1, -1].mean(dim=2) for layer in maps], 2))
    return torch.cat(of_sets).mean(dim=0).T  # [N, H, layers] -> [layers, H]


on_odd = attention_of_others_on_odd(model, test_batches)
for layer, heads in enumerate(on_odd.tolist(), start=1):
    print(
        f"layer {layer}: "
        + "  ".join(
            f"head {head}: {weight:.3f}" for head, weight in enumerate(heads, start=1)
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
# ## Recap
#
# - A Transformer without positional encoding is a network for sets.
# - The softmax runs over the elements of the set, so the same model works for sets of any size.
# - Training sets are drawn anew each time; evaluation sets are fixed by a seed.
# - A simple rule belongs beside every model, and an interval beside every accuracy.
# - Equivariance is exact up to rounding, and one positional encoding would destroy it.
#
# ## Exercises
#
# 1. *(easy, 5 minutes)* Set `set_size` to 5 and to 14 and run the notebook again. Is a larger set easier or harder? Does the model need to be trained again?
# 2. *(easy, 10 minutes)* How well does the cosine rule do if the mean feature of the set is subtracted from each image first?
# 3. *(medium, 20 minutes)* With few mistakes, the table of confused classes is mostly chance. Draw the test sets with ten other seeds and count again: which pairs of digits stay?
# 4. *(medium, 20 minutes)* Give the model sets in which *no* image is odd. What do the probabilities look like? What would you add to the model so that it can say "none"?
# 5. *(hard, 40 minutes)* Train a model *with* positional encoding. Then move the odd one from the last place to another and measure its accuracy. Explain what it has learned.
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
