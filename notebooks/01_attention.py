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
# # Attention
#
# **What you will build.**
# You write scaled dot-product attention in four lines and multi-head attention in a dozen.
# Then you show that both equal the course's library and PyTorch's own layers, number for number.
# From there you measure what attention does: why its scores are scaled, what a mask does, what happens when the input is shuffled, what it costs beside recurrence and convolution, and how far a gradient reaches in each.
#
# **What you need to know.**
# Matrix products, the softmax function, and PyTorch tensors with more than two dimensions.
#
# **How long it takes.**
# Reading takes about an hour.
# Running it takes about half a minute on a laptop; a GPU would not help, since what is timed here is timed on one thread of the processor.
#
# **Notation.**
#
# | symbol | meaning |
# | --- | --- |
# | $B$ | number of sequences in a batch |
# | $T$ | length of a sequence; $T_q$ and $T_k$ where queries and keys differ in number |
# | $H$ | number of attention heads |
# | $D$, $d$ | width of a token's vector in the model; $d$ where layers of other kinds are compared |
# | $d_k$, $d_v$ | width of a query or key, and of a value |
# | $Q, K, V$ | queries $[T_q, d_k]$, keys $[T_k, d_k]$ and values $[T_k, d_v]$, one in each row |

# %% tags=["parameters"]
profile: str = "quick"  # one of: quick, full; full measures more samples
seed: int = 42  # of the random numbers; measurements over several seeds begin with it

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
import math
import statistics

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import diagrams, interactive, plotting
from course_utils.attention import MultiheadAttention, regroup_per_head, scaled_dot_product
from course_utils.experiments import scale_in_training
from course_utils.experiments.gradient_reach import (
    decay_rate,
    gradient_reach,
    layers_to_connect,
)
from course_utils.experiments.layer_cost import EXPLICIT, FUSED, LSTM, layer_cost, recorded
from course_utils.experiments.permutation_equivariance import equivariance_error
from course_utils.experiments.power_law import crossing, exponent
from course_utils.experiments.score_scaling import (
    WIDTHS,
    score_variance,
    softmax_saturation,
)
from course_utils.results import record

torch.manual_seed(seed)  # for the initial weights of the layers
generator = torch.Generator().manual_seed(
    seed
)  # on the CPU, so that the numbers are the same with and without a GPU
num_samples = {"quick": 2_000, "full": 50_000}[profile]
seeds = range(seed, seed + {"quick": 5, "full": 20}[profile])  # of each measurement

# %% [markdown]
# ## Looking things up, softly
#
# A Python dictionary looks up a *key* that equals your *query* exactly, and returns its *value*.
# Attention is a lookup that is never exact: it compares the query with **every** key, turns the comparisons into weights that sum to 1, and returns the weighted mean of **all** values.
#
# Four roles take part:
#
# - The **query** says what is being looked for.
# - A **key** says what an element has to offer; there is one for each element.
# - The **score** of a key is a number that tells how well it fits the query.
# - A **value** is what an element contributes once it has been found.
#
# Take the sentence "the cat left its milk because *it* was full", and ask what *it* refers to.
# The word *it* sends out a query; three of the other words answer with a key and a value.

# %%
diagrams.show("attention_over_a_sentence")

# %% [markdown]
# The vectors below are set by hand, so that you can follow the arithmetic.
# Their first dimension stands for "can eat", the second for "can be poured".
# A trained model finds such vectors by itself, and its dimensions rarely have names.

# %%
names = ["cat", "left", "milk"]
keys = torch.tensor([[2.0, 0.2], [0.1, 0.1], [0.3, 1.8]])  # [3, 2]: what each word offers
values = torch.tensor(
    [[1.0, 3.0], [2.5, 2.0], [3.0, 0.5]]
)  # [3, 2]: what each word contributes
query = torch.tensor([1.8, 0.4])  # [2]: "it" looks for something that can eat

scores = keys @ query  # [3]: one dot product for each key
weights = (scores / math.sqrt(2)).softmax(dim=0)  # [3]: positive, and they sum to 1
output = weights @ values  # [2]: the weighted mean of the values

for name, score, weight in zip(names, scores, weights, strict=True):
    print(f"{name:>5}: score {score:.2f}, weight {weight:.2f}")
print(f"output: [{output[0]:.2f}, {output[1]:.2f}]")

# %%
plotting.show(
    plotting.worked_example(names, query, keys, weights, values, output),
    alt="Left: the query points in almost the same direction as the key of cat. Middle: "
    "cat gets most of the attention weight. Right: the output lies close to the value "
    "of cat, on its way to the mean of all three values.",
)

# %% [markdown]
# The query points along the key of *cat*, so their dot product is the largest and *cat* gets most of the weight.
# The output lies close to the value of *cat*, and a little of the other two is mixed in.
# Nothing is chosen outright: that is what makes attention differentiable, and so trainable.

# %% [markdown]
# ## Scaled dot-product attention by hand
#
# With many queries at once, the queries form the rows of a matrix, and so do the keys and the values.
# The whole lookup is then one formula ([Vaswani et al., 2017](#Sources), equation 1):
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# Here $Q$ is $[T_q, d_k]$, $K$ is $[T_k, d_k]$ and $V$ is $[T_k, d_v]$.
# The product $Q K^\top$ is $[T_q, T_k]$ and holds the score of every query with every key.
# The softmax runs along each row, over the keys, so every query's weights sum to 1.
# The result is $[T_q, d_v]$: one weighted mean of the values for each query.
#
# Drawn as a graph, from the inputs to the result; the mask is optional, and comes further below.

# %%
diagrams.show("scaled_dot_product")

# %% [markdown]
# In code, it is four lines.


# %%
def attention_by_hand(q, k, v):
    scores = q @ k.transpose(-2, -1)  # [..., Tq, d_k] @ [..., d_k, Tk] -> [..., Tq, Tk]
    scores = scores / math.sqrt(q.size(-1))
    weights = scores.softmax(dim=-1)  # over the keys
    return weights @ v, weights  # [..., Tq, d_v], [..., Tq, Tk]


# %% [markdown]
# Here is an example small enough to check on paper.
# Queries and keys are the rows of the 2 × 2 identity matrix, so $Q K^\top$ is the identity as well.
# Divided by $\sqrt{2}$, each row of scores is $1/\sqrt{2}$ and 0 in some order.
# The softmax of these is $e^{1/\sqrt{2}} / (e^{1/\sqrt{2}} + 1)$ and $1 / (e^{1/\sqrt{2}} + 1)$.

# %%
q = k = torch.eye(2)
v = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
small_values, small_weights = attention_by_hand(q, k, v)
print("weights\n", small_weights)
print("values\n", small_values)
print(f"on paper, the larger weight: {math.exp(0.5**0.5) / (math.exp(0.5**0.5) + 1):.4f}")

# %% [markdown]
# The library's `scaled_dot_product` does the same and adds masks.
# PyTorch's `F.scaled_dot_product_attention` does the same with fused kernels, which never write the matrix of weights to memory.
# All three agree on random input: `assert_close` stays silent when two tensors are equal to rounding, and raises an error otherwise.

# %%
q = torch.randn(2, 5, 8, generator=generator)  # [B, Tq, d_k]
k = torch.randn(2, 7, 8, generator=generator)  # [B, Tk, d_k]
v = torch.randn(2, 7, 3, generator=generator)  # [B, Tk, d_v]
by_hand, weights_by_hand = attention_by_hand(q, k, v)
from_library, weights_from_library = scaled_dot_product(q, k, v)
torch.testing.assert_close(by_hand, from_library)
torch.testing.assert_close(weights_by_hand, weights_from_library)
torch.testing.assert_close(by_hand, F.scaled_dot_product_attention(q, k, v))
print("values", list(by_hand.shape), "weights", list(weights_by_hand.shape))

# %% [markdown]
# ## Why the scores are scaled
#
# **Claim.** A dot product of $d_k$ independent terms of unit variance has variance $d_k$; dividing by $\sqrt{d_k}$ brings it back to 1, whatever the width.
#
# The claim follows from two rules.
# A product of two independent variables with mean 0 and variance $\sigma^2$ has variance $\sigma^2 \cdot \sigma^2 = \sigma^4$.
# The variance of a sum of independent terms is the sum of the variances, so the dot product has variance $d_k \sigma^4$.
# With $\sigma = 1$, that is $d_k$.
#
# It would be refuted if the measured variance did not grow in proportion to $d_k$.
#
# Here it is for one width: pairs of a query and a key with independent standard normal numbers in both, and the variance of their dot products.

# %%
queries = torch.randn(num_samples, 64, generator=generator)
keys = torch.randn(num_samples, 64, generator=generator)
dot_products = (queries * keys).sum(dim=-1)  # [num_samples]
print(f"variance at d_k = 64: {dot_products.var():.1f}")
print(f"divided by the root of d_k: {(dot_products / math.sqrt(64)).var():.2f}")

# %% [markdown]
# `score_variance` does the same for many widths and several seeds.
# In the figure, the line is the median over the seeds, and the band goes from the smallest to the largest.

# %%
variance = score_variance(WIDTHS, num_samples, seeds)
plotting.show(
    plotting.curves_with_spread(
        WIDTHS,
        {"q · k": variance["plain"], "q · k / √d_k": variance["scaled"]},
        xlabel="width d_k",
        ylabel="variance over random pairs",
        xscale="log",
        yscale="log",
        markers=True,
    ),
    alt="On logarithmic axes, the variance of the plain dot product rises along a "
    "straight line from 2 to about 1000; that of the scaled one stays at 1. The bands "
    "over seeds are hardly wider than the lines.",
)
powers = [exponent(WIDTHS, of_seed) for of_seed in variance["plain"]]
record("variance_exponent", statistics.fmean(powers))
record("variance_exponent_spread", max(powers) - min(powers))
record("scaled_variance_mean", statistics.fmean(map(statistics.fmean, variance["scaled"])))

# %% [markdown]
# The variance grows with $d_k$ to the power of the first number, which is 1 to within the spread over seeds, the second number.
# The scaled variance stays at 1, which is the third.
#
# What this does not show: the scores of a trained model.
# Training makes some queries and keys fit each other, and then they are no longer independent; the rule says where training starts.

# %% [markdown]
# Why does it matter?
#
# **Claim.** Large scores drive the softmax to its ends, one weight near 1 and the others near 0, and there its gradient vanishes: a query can hardly learn to look elsewhere.
# [Vaswani et al. (2017)](#Sources) suspect this, and give it as the reason for the scale.
#
# The next cell measures both, for 16 keys, again over several seeds.
# The first is the entropy of the weights in nats, $-\sum_j a_j \log a_j$ over the weights $a_j$ of a row: $\log 16$ for uniform weights, and 0 when one key has all the weight.
# The second is the norm of the matrix of derivatives of the weights by the scores, the Jacobian $\text{diag}(a) - a\, a^\top$ of shape $[16, 16]$.
# The claim would be refuted if they did not fall as the width grows, or fell in the same way with the scaling.

# %%
saturation = softmax_saturation(WIDTHS, queries=500, seeds=seeds)
plotting.show(
    plotting.curves_with_spread(
        WIDTHS,
        saturation["entropy"],
        xlabel="width d_k",
        ylabel="entropy of the weights (nats)",
        xscale="log",
        markers=True,
        reference=(math.log(16), "uniform weights"),
    ),
    alt="Entropy of the weights against width. Without scaling it falls towards zero as "
    "the width grows; with scaling it stays a little below that of uniform weights.",
)
plotting.show(
    plotting.curves_with_spread(
        WIDTHS,
        saturation["gradient"],
        xlabel="width d_k",
        ylabel="norm of the softmax's Jacobian",
        xscale="log",
        markers=True,
    ),
    alt="Norm of the gradient of the weights against width. Without scaling it falls "
    "towards zero as the width grows; with scaling it stays the same.",
)
for quantity, of_scores in saturation.items():
    for name, of_seeds in of_scores.items():
        record(f"{quantity}_{name}_1024", statistics.median(row[-1] for row in of_seeds))

# %% [markdown]
# At width 1024 the unscaled softmax has almost made up its mind before any training, and its gradient is a fraction of the scaled one's.
# At the smallest widths it is the other way round: the unscaled softmax lets through a little more gradient, since a softmax is most sensitive when its weights are neither uniform nor certain.
# So the claim holds for wide queries and keys, which is where it matters.
#
# What this does not show: that training fails without the scale.
# It shows the state at the start, for random queries and keys; a model could learn smaller ones.

# %% [markdown]
# ### Does the scale matter in training?
#
# **Question.** Does a layer without the scale stay behind once it is trained, or does the optimizer make up for it?
#
# A single attention layer with one head learns to reverse sequences of 16 digits: no residuals and no normalisation, so that nothing else steadies it.
# Both arms are the same but for the factor $1/\sqrt{d_k}$, and each gets the best of six learning rates, by the median over three seeds.
# The scale matters if the arm without it is still behind at its own best rate; otherwise it does not.
#
# The whole search takes some minutes and is committed with the course; the cell after the figure trains both arms of width 256 once more.

# %%
trained = scale_in_training.recorded()["measured"]
arms = {
    f"d_k = {d_k}, {name}": trained[d_k][name][
        scale_in_training.best_rate(trained[d_k][name])
    ]
    for d_k in ("16", "256")
    for name in ("scaled", "plain")
}
points = len(trained["256"]["plain"]["0.001"][0])
plotting.show(
    plotting.curves_with_spread(
        [scale_in_training.TOGETHER * (point + 1) for point in range(points)],
        arms,
        xlabel="optimizer step",
        ylabel="training loss (nats a digit)",
        reference=(math.log(10), "guessing"),
    ),
    alt="Training loss against the step for four arms. At width 256 the scaled arm is at "
    "zero after a few dozen steps, while the plain arm falls slowly and with a wide band "
    "over seeds, and is not at zero in the end. At width 16 both arms reach zero, the "
    "plain one later.",
)
for name, of_seeds in arms.items():
    print(f"{name:>18}: loss in the end, per seed: {[of_seed[-1] for of_seed in of_seeds]}")

# %% tags=["trained", "nbval-ignore-output"]
for name in ("scaled", "plain"):
    rate = scale_in_training.best_rate(trained["256"][name])
    losses = scale_in_training.train(256, name == "scaled", float(rate), seed)
    committed_means = [statistics.fmean(of_seed) for of_seed in arms[f"d_k = 256, {name}"]]
    print(f"{name}, rate {rate}, mean loss over all steps, committed:", end=" ")
    print(f"{min(committed_means):.2f} to {max(committed_means):.2f}, here:", end=" ")
    record(f"{name}_mean_loss_256", statistics.fmean(losses))

# %% [markdown]
# At width 16 the optimizer makes up for the missing scale: both arms learn the task, the plain one later.
# At width 256 it does not: at its own best rate the arm without the scale is behind after 200 steps, and its seeds differ far more.
#
# What this does not show: that it would never get there.
# This is one task, one layer and 200 steps.
# Residuals, normalisation or smaller initial weights of the queries and keys could take over what the scale does; none of them is tried here.

# %% [markdown]
# ## Masks
#
# A **mask** says which query may attend to which key.
# In this course, **True (or 1) means "may attend"**, everywhere.
# Libraries differ here, so it is worth checking each time: `F.scaled_dot_product_attention` reads True in the same way, while `nn.MultiheadAttention` reads True as "may *not*".
#
# A score that is masked out becomes $-\infty$ before the softmax, and since $e^{-\infty} = 0$, its weight is exactly 0.
# A large negative number such as $-10^4$ will not do: scores can be that low themselves, and in half precision larger numbers overflow.
#
# Two masks are common:
#
# - A **padding mask** hides the tokens that only fill a short sequence up to the length of its batch.
#   It depends on the key alone, so whole columns are hidden.
# - A **causal mask** hides the future: query $i$ may attend to the keys $0$ to $i$.
#   A model that generates text needs it, since the next word is not there yet when it is predicted.

# %%
tokens = ["a", "b", "c", "d", "–"]
is_token = torch.tensor([True, True, True, True, False])  # [T]: the last one is padding
padding_mask = is_token.expand(5, 5)  # [Tq, Tk]: the same for each query
causal_mask = torch.ones(5, 5, dtype=torch.bool).tril()  # [Tq, Tk]: the lower triangle
plotting.show(
    plotting.masks(
        {
            "padding": padding_mask,
            "causal": causal_mask,
            "both": padding_mask & causal_mask,
        },
        names=tokens,
    ),
    alt="Three 5 by 5 masks. Padding: the last column is 0. Causal: the lower triangle is "
    "1. Both: the lower triangle without the last column.",
)

# %% [markdown]
# The next cell adds the mask to the attention written by hand.
# One case needs care: a query that may attend to **nothing**.
# Its scores are all $-\infty$, the softmax divides zero by zero, and a single NaN then spreads through the whole model.
# The course defines the answer: such a query gets a row of zeros and zero values.


# %%
def masked_attention_by_hand(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(
        0.0
    )  # a row of -inf only becomes NaN: zeros instead
    return weights @ v, weights


x = torch.randn(
    5, 4, generator=generator
)  # [T, D]: here queries, keys and values are the tokens themselves
_, causal_weights = masked_attention_by_hand(x, x, x, causal_mask)
torch.testing.assert_close(causal_weights, scaled_dot_product(x, x, x, causal_mask)[1])
torch.testing.assert_close(
    causal_weights @ x,
    F.scaled_dot_product_attention(x[None], x[None], x[None], causal_mask)[0],
)

nothing_for_first = causal_mask.clone()
nothing_for_first[0] = False
blind_values, blind_weights = scaled_dot_product(x, x, x, nothing_for_first)
print("first row, may attend to nothing:", blind_values[0].tolist())
print(
    "sum of each row of weights:",
    [round(total, 4) for total in blind_weights.sum(dim=-1).tolist()],
)

# %%
plotting.show(
    plotting.attention_maps([causal_weights[None]], queries=tokens, numbers=True),
    alt="Attention weights under the causal mask: a lower triangle. The first query gives "
    "all its weight to itself, the others share theirs among the tokens up to "
    "themselves.",
)

# %% [markdown]
# Does a masked token have any influence at all?
# If the mask works, you can change the padding to anything and the other tokens' results stay the same, to the last bit.

# %%
layer = MultiheadAttention(input_dim=4, embed_dim=8, num_heads=2)
sentence = x[None]  # [1, T, 4]
influence = {"padding_influence": [], "padding_influence_unmasked": []}
with torch.no_grad():
    before = layer(sentence, token_mask=is_token[None])[:, :4]
    for filling in (100.0, -100.0):  # a query that dislikes the one is drawn to the other
        tampered = sentence.clone()
        tampered[:, 4] = filling  # the padding token
        masked = layer(tampered, token_mask=is_token[None])[:, :4]
        unmasked = layer(tampered)[:, :4]
        influence["padding_influence"].append((masked - before).abs().max().item())
        influence["padding_influence_unmasked"].append(
            (unmasked - before).abs().max().item()
        )
for name, differences in influence.items():
    record(name, max(differences))

# %% [markdown]
# ## Multi-head attention by hand
#
# A softmax has one peak or spreads thin; it cannot look at two places for two reasons at once.
# **Multi-head attention** runs $H$ lookups side by side, each with queries, keys and values of its own, and of width $D / H$.
# For an input $X$ of shape $[T, D]$, head $h$ computes
#
# $$O_h = \text{Attention}(X W_h^Q,\; X W_h^K,\; X W_h^V) \qquad\text{and}\qquad \text{MultiHead}(X) = [O_1, \dots, O_H]\, W^O$$
#
# where $W_h^Q$, $W_h^K$ and $W_h^V$ are $[D, D/H]$, each $O_h$ is $[T, D/H]$, the brackets put the heads side by side, and $W^O$ is $[D, D]$ and mixes them.
# All heads together cost about what one head of full width costs, because each is $H$ times narrower.

# %%
diagrams.show("multihead")

# %% [markdown]
# The layer keeps all the projections in one matrix, `qkv_proj`, whose rows are grouped **per head**: first the query, key and value of head 1, then those of head 2, and so on.
# Written out head by head, it is this:


# %%
def multihead_by_hand(x, layer):
    """Self-attention over x [T, D] with the weights of a layer, one head at a time."""
    head_dim = layer.head_dim
    projected = x @ layer.qkv_proj.weight.T + layer.qkv_proj.bias  # [T, 3·D]
    outputs = []
    for head in range(layer.num_heads):
        own = projected[
            :, 3 * head_dim * head : 3 * head_dim * (head + 1)
        ]  # [T, 3·head_dim]
        q, k, v = own.split(head_dim, dim=-1)  # each [T, head_dim]
        outputs.append(attention_by_hand(q, k, v)[0])
    side_by_side = torch.cat(outputs, dim=-1)  # [T, D]
    return side_by_side @ layer.o_proj.weight.T + layer.o_proj.bias


layer = MultiheadAttention(input_dim=16, embed_dim=16, num_heads=4)
x = torch.randn(6, 16, generator=generator)
with torch.no_grad():
    library_output, library_maps = layer(x[None], return_attention=True)
    torch.testing.assert_close(multihead_by_hand(x, layer), library_output[0])
    torch.testing.assert_close(
        layer(x[None]), library_output
    )  # without maps: the fused kernels
print("output", list(library_output.shape), "maps", list(library_maps.shape))

# %%
plotting.show(
    plotting.attention_maps([library_maps[0]]),
    alt="Attention maps of four heads of an untrained layer over six random tokens. Each "
    "head spreads its weights differently.",
)

# %% [markdown]
# Even before training the heads look at different tokens, since each has its own random projections.
# Read a map row by row: each row is one query, and its weights sum to 1.
#
# The next cell shows the same maps to look into.
# Choose a head and a query, and mask a key: its weight goes to the others, and the row still sums to 1.

# %%
interactive.show(
    interactive.attention_explorer(
        [library_maps[0]],
        tokens=[f"x{t}" for t in range(1, 7)],
        alt="The same four maps, to look into: choose a head and a query to see its weights, "
        "and mask keys to see the others renormalise.",
    )
)

# %% [markdown]
# Notebook 04 trains heads and measures how much they differ then.
#
# PyTorch's `nn.MultiheadAttention` computes the same function, but it stores the rows in another order: all queries first, then all keys, then all values.
# To carry weights from one to the other, the rows must be regrouped, which `regroup_per_head` does.
# Copying them as they are raises no error, since the shapes agree; the numbers are simply wrong.

# %%
theirs = nn.MultiheadAttention(embed_dim=16, num_heads=4, batch_first=True)
ours = MultiheadAttention(input_dim=16, embed_dim=16, num_heads=4)


def difference_after_copying(rearrange):
    """Copy PyTorch's weights into our layer; return the largest difference of the outputs."""
    with torch.no_grad():
        ours.qkv_proj.weight.copy_(rearrange(theirs.in_proj_weight))
        ours.qkv_proj.bias.copy_(rearrange(theirs.in_proj_bias))
        ours.o_proj.load_state_dict(theirs.out_proj.state_dict())
        expected, _ = theirs(x[None], x[None], x[None])
        return (ours(x[None]) - expected).abs().max().item()


copied_straight = difference_after_copying(lambda rows: rows)
regrouped = difference_after_copying(lambda rows: regroup_per_head(rows, num_heads=4))
record("difference_copied_straight", copied_straight)
print("regrouped per head, equal to rounding:", regrouped < 1e-6)

# %% [markdown]
# ## Attention does not know the order
#
# **Claim.** Self-attention is *permutation-equivariant*: shuffle the tokens, and the outputs are shuffled in the same way and otherwise unchanged.
#
# With a permutation matrix $P$ of shape $[T, T]$, that is $\text{MultiHead}(P X) = P\, \text{MultiHead}(X)$.
# Nothing in the formula depends on where a token stands: each token's output is a sum over all the others.
# The claim would be refuted by any difference larger than rounding.
#
# The next cell shuffles the tokens of one small example, and compares every output.

# %%
order = torch.randperm(6, generator=generator)
with torch.no_grad():
    shuffled_first = layer(x[order][None])[0]  # MultiHead(P X), [T, D]
    shuffled_after = layer(x[None])[0][order]  # P MultiHead(X), [T, D]
difference = (shuffled_first - shuffled_after).abs().max().item()
print("attention alone, equal to rounding:", difference < 1e-5)

# %% [markdown]
# One example may be a coincidence, so `equivariance_error` repeats it with other weights, tokens and permutations, and gives $\lVert f(P X) - P f(X) \rVert / \lVert f(X) \rVert$, where $f$ is the layer.
# It then breaks the symmetry: it adds a positional encoding to what the layer gets, a different vector for each position.
# As a scale it also gives $\lVert P f(X) - f(X) \rVert / \lVert f(X) \rVert$, how much the outputs of different tokens differ at all.

# %%
errors = equivariance_error(seeds=range(seed, seed + 10))
for name, of_seeds in errors.items():
    print(f"{name:>20}: {min(of_seeds):8.2g} to {max(of_seeds):8.2g}")
record("equivariant_to_rounding", int(max(errors["attention"]) < 1e-6))
record("error_with_positions", statistics.median(errors["with positions"]))
record("error_of_another_permutation", statistics.median(errors["another permutation"]))

# %% [markdown]
# Attention alone follows the shuffle: what is left is rounding in the seventh digit.
# That is a virtue for sets, where order means nothing: notebook 04 relies on it.
# For a sequence it is a defect: "dog bites man" and "man bites dog" would be the same bag of words.
#
# With positions, the difference is a good part of what distinguishes one token's output from another's.
# So an untrained layer already tells orders apart once positions are added; what this does not show is that it makes any use of them.
# Notebook 02 says what to add, and why.

# %% [markdown]
# ## Attention beside recurrence and convolution
#
# Three kinds of layer map a sequence $[T, d]$ to another one.
# They differ in which tokens an output is made from, and by which way.

# %%
diagrams.show("layer_types")

# %% [markdown]
# [Vaswani et al. (2017)](#Sources) compare them by orders of growth, in their table 1:
#
# | layer | multiplications | sequential steps | longest path between two tokens |
# | --- | --- | --- | --- |
# | self-attention | $O(T^2 \cdot d)$ | $O(1)$ | $O(1)$ |
# | recurrence | $O(T \cdot d^2)$ | $O(T)$ | $O(T)$ |
# | convolution, kernel $k$ | $O(k \cdot T \cdot d^2)$ | $O(1)$ | $O(T / k)$; $O(\log_k T)$ when dilated |
#
# The *multiplications* are what the layer costs.
# The *sequential steps* limit how much can be done at once: a recurrent layer must finish one token before it starts the next.
# The *longest path* is the number of layers or steps that a signal crosses from one token to another.
# The next two sections measure the first and the last column; the middle one follows from how the layers are defined.
#
# ### What a layer costs
#
# **Claim.** Attention's time grows as $T^2$ and in proportion to $d$; that of recurrence and convolution grows in proportion to $T$ and as $d^2$.
# *Explicit* attention, which keeps the map of weights, takes memory that grows as $T^2$ too; *fused* attention does not.
#
# Fused attention computes the same values block by block, and never holds a map of shape $[T, T]$ ([Dao et al., 2022](#Sources)).
# It is what `MultiheadAttention` runs on when you do not ask for the maps.
#
# `layer_cost` runs four layers over a single sequence: attention with one head, explicit and fused, an LSTM, and a convolution with kernel 3.
# All are whole layers, projections included, forward only, on one thread.
# Time is that of the processor, the shortest of five timings.
# Memory is exact: the most that PyTorch's allocator held at once, beyond the input and the weights.
# The power $p$ of $T^p$ is fitted by least squares to the logarithms, from $T = 1024$ on.
# A power far from the ones claimed would refute the claim.
#
# The whole range takes some minutes, so its results are committed with the course; below you measure a part of it anew.

# %%
committed = recorded()
lengths, by_width = committed["measured"]["lengths"], committed["measured"]["widths"]
fit_from = 1024  # tokens
long = slice(lengths.index(fit_from), None)  # the lengths that are fitted
of_64 = by_width["64"]
panels = {
    "time (ms)": {name: [1e3 * s for s in cost["seconds"]] for name, cost in of_64.items()},
    "peak memory (MB)": {
        name: [size / 1e6 for size in cost["bytes"]] for name, cost in of_64.items()
    },
}
fits = {
    ylabel: {name: exponent(lengths[long], y[long]) for name, y in curves.items()}
    for ylabel, curves in panels.items()
}
plotting.show(
    plotting.growth(
        lengths,
        panels,
        xlabel="sequence length T (tokens)",
        symbol="T",
        exponents=fits,
        fitted_from=fit_from,
    ),
    alt="Time and peak memory of four layers of width 64 against length, on logarithmic "
    "axes. Time: both attentions start among the others and end far above them, rising "
    "about twice as steeply. Memory: explicit attention alone rises twice as steeply; "
    "fused attention stays with the LSTM and the convolution.",
)

# %% [markdown]
# The legends give the fitted powers at width 64; the shaded part is what was fitted.
# The next cell sets them beside the powers of the multiplications, counted on paper at the same points, and adds the growth with $d$ at the longest $T$, fitted from width 128 on.

# %%
widths = [int(width) for width in by_width]
wide = slice(widths.index(128), None)
print(f"{'':>18}    in T: time  counted  memory    in d: time  counted")
for name, cost in of_64.items():
    in_width = {
        of: exponent(widths[wide], [by_width[str(d)][name][of][-1] for d in widths[wide]])
        for of in ("seconds", "multiplications")
    }
    counted = exponent(lengths[long], cost["multiplications"][long])
    print(
        f"{name:>18}{fits['time (ms)'][name]:14.2f}{counted:9.2f}"
        f"{fits['peak memory (MB)'][name]:8.2f}{in_width['seconds']:14.2f}"
        f"{in_width['multiplications']:9.2f}"
    )

# %% [markdown]
# Is attention the cheaper one for short sequences, then?
# On paper an attention layer takes $4 T d^2 + 2 T^2 d$ multiplications, its four projections included, and an LSTM $8 T d^2$, so the two are equal at $T = 2 d$.
# The next cell looks up where the measured times cross.

# %%
crossings = {
    name: [
        crossing(
            lengths, by_width[str(d)][name]["seconds"], by_width[str(d)][LSTM]["seconds"]
        )
        for d in widths
    ]
    for name in (EXPLICIT, FUSED)
}
plotting.show(
    plotting.curves(
        widths,
        crossings | {"counted: T = 2d": [2 * d for d in widths]},
        xlabel="width d",
        ylabel="length T (tokens)",
        title="Length from which the LSTM is faster",
        markers=True,
    ),
    alt="The length from which an LSTM is faster than attention, against the width: it "
    "rises with the width for both kinds of attention, and lies above the counted 2d "
    "everywhere.",
)
record("crossing_width_64", crossings[FUSED][widths.index(64)])
record("crossing_width_512", crossings[FUSED][widths.index(512)])

# %% [markdown]
# Attention stays ahead of the LSTM for longer than the count says, by a factor that is largest for narrow layers.
# A multiplication inside one large matrix product is cheaper than one in a chain of small steps.
# The count gets the order of growth right, and the constant wrong.
#
# The rest of this section is measured on the machine that runs the notebook: width 64, from 256 tokens to 8192.
# Its times differ from the committed ones; its powers should not differ by much.

# %% tags=["nbval-ignore-output"]
here_lengths = [256, 512, 1024, 2048, 4096, 8192]
here = layer_cost(64, here_lengths, repeats={"quick": 3, "full": 7}[profile], seed=seed)
from_1024 = slice(here_lengths.index(fit_from), None)
shown_as = {"seconds": "time (ms)", "bytes": "peak memory (MB)"}
for name, cost in here.items():
    for of, short in (("seconds", "time"), ("bytes", "memory")):
        power = exponent(here_lengths[from_1024], cost[of][from_1024])
        print(f"committed {fits[shown_as[of]][name]:.2f}, measured here:", end=" ")
        record(f"{name.lower().replace(' ', '_')}_{short}_exponent", power)

# %% [markdown]
# In time, both attentions grow about as $T^2$; in memory only the explicit one does.
# The LSTM and the convolution grow about as $T$ in both.
#
# Where the powers deviate, there are reasons that the orders of growth leave out:
#
# - For short sequences nothing grows as claimed.
#   Each call costs a fixed time, and the projections, which grow as $T$, outweigh the scores until $T$ is well beyond $d$.
#   That is why the fit begins at 1024 tokens.
# - Explicit attention writes maps so large that the operating system hands out and takes back their memory at each call, which shows as a jump in its time: its power can come out above 2.
#   On Linux, telling the C library to keep its memory (by the variables `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_`) takes the jump away.
# - Fused attention holds a block of scratch memory of constant size, which is still visible at 1024 tokens and brings its power below 1.
# - In $d$, the powers of time fall short of the counted ones: the softmax and the writing of the map take the same time at any width, and narrow layers do not keep the processor busy.
#
# What this does not show: a GPU, several threads, batches of more than one sequence, or training, where explicit attention keeps its maps until the backward pass.
# Each of these changes the constants, and so the lengths at which the curves cross.
# Cheaper approximations of attention start from its quadratic time; [Tay et al. (2020)](#Sources) survey them.

# %% [markdown]
# ### How far a gradient reaches
#
# **Claim.** Between two tokens, attention has a path of length 1, recurrence of length $T$, and a stack of convolutions of length $T / k$, or $\log_k T$ when dilated.
#
# First the paths themselves.
# `layers_to_connect` stacks layers until the last token's output depends at all on a token at a given distance before it, that is, until the gradient is no longer zero.
# Its convolutions look back only, at the token itself and $k - 1$ before it, so that each layer adds $k - 1$ tokens; dilated, each layer multiplies the reach by $k$.
# A number that does not follow $n / (k - 1)$ or $\log_k (n + 1)$, rounded up, would refute the claim.

# %%
distances = [1, 2, 8, 26, 80, 127]
kinds = ("attention", "convolution", "dilated convolution")
print(f"{'distance n':>20}" + "".join(f"{n:5}" for n in distances))
for kind in kinds:
    print(f"{kind:>20}" + "".join(f"{layers_to_connect(kind, n):5}" for n in distances))
for kind in kinds:
    record(f"{kind.replace(' ', '_')}_layers_127", layers_to_connect(kind, 127))

# %% [markdown]
# A recurrent layer connects any two tokens as well, but through one step for each token between them.
# What does a long path cost?
# A gradient is multiplied by a factor at each step, so that it may shrink with the distance as a power of that factor; [Bengio et al. (1994)](#Sources) showed this for recurrent networks, and the LSTM ([Hochreiter & Schmidhuber, 1997](#Sources)) was made to keep the factor near 1.
#
# **Claim.** In an untrained LSTM the gradient of the last output by the input $n$ tokens before it falls exponentially with $n$; in an untrained attention layer it does not fall with $n$.
#
# The cell state of an LSTM is multiplied at each step by the *forget gate*, a number between 0 and 1.
# Its bias says where the gate starts: at 0 it is half open, at 1 it is $\sigma(1)$, and so on, where $\sigma(b) = 1 / (1 + e^{-b})$.
# PyTorch draws this bias around 0; [Jozefowicz et al. (2015)](#Sources) recommend 1.
# The next cell measures three biases.
# It takes the norm of the derivative, a matrix of shape $[d, d]$, at each distance in sequences of 128 random tokens, $d = 32$, for several seeds.

# %%
length = 128
reach = gradient_reach(length, seeds=seeds)
plotting.show(
    plotting.curves_with_spread(
        range(length),
        reach,
        xlabel="distance n from the last token (tokens)",
        ylabel="norm of the gradient",
        yscale="log",
    ),
    alt="Norm of the gradient against the distance, with a logarithmic scale. Attention "
    "is level after the first token. The LSTM with forget bias 0 falls along a steep "
    "straight line over more than twenty orders of magnitude, that with bias 1 along a "
    "less steep one, and that with bias 3 hardly falls.",
)

# %%
fitted = range(8, 65)  # distances, in tokens
rates = {
    name: [decay_rate(of_seed, fitted) for of_seed in of_seeds]
    for name, of_seeds in reach.items()
}
for name, of_seeds in rates.items():
    print(f"{name:>20}: times {min(of_seeds):.3f} to {max(of_seeds):.3f} with each token")
record("attention_rate", statistics.median(rates["attention"]))
for bias in (0, 1, 3):
    gate = 1 / (1 + math.exp(-bias))
    print(f"forget bias b = {bias}, σ(b) = {gate:.3f}:", end=" ")
    record(f"lstm_rate_bias_{bias}", statistics.median(rates[f"LSTM, forget bias {bias}"]))

# %% [markdown]
# Attention's factor is 1: a token far away gets as much gradient as one nearby.
# The LSTM's gradient falls exponentially, and the forget gate's bias decides how fast.
# The measured factors lie above $\sigma(b)$, the gate's value when nothing else goes into it.
# A gate varies with the token and the dimension, a norm over all dimensions follows those that forget least, and a part of the gradient passes through the hidden state; how much each contributes is not measured here.
#
# So is attention ahead everywhere?
# No: each of its weights is about $1/T$ before training, and the gradient is diluted accordingly.
# The next cell measures how attention's gradient depends on the length, and at which distance it overtakes the LSTM's.

# %%
dilution_lengths = [32, 64, 128, 256]
diluted = []  # mean norm over all distances but 0, and over the seeds
for each in dilution_lengths:
    norms = gradient_reach(each, forget_biases=(), seeds=seeds)["attention"]
    diluted.append(statistics.fmean(statistics.fmean(of_seed[1:]) for of_seed in norms))
    print(f"T = {each:3}: mean gradient {diluted[-1]:.4f}")
record("dilution_exponent", exponent(dilution_lengths, diluted))

medians = {
    name: [statistics.median(at_distance) for at_distance in zip(*of_seeds, strict=True)]
    for name, of_seeds in reach.items()
}
for bias in (0, 1, 3):
    behind = [
        n
        for n in range(length)
        if medians[f"LSTM, forget bias {bias}"][n] > medians["attention"][n]
    ]
    print(f"the LSTM with forget bias {bias} is ahead up to distance {behind[-1]}")
    if bias < 3:
        record(f"attention_ahead_from_bias_{bias}", behind[-1] + 1)

# %% [markdown]
# The gradient falls with the *length* about as $1/T$, however far the token is.
# Close by, the LSTM has the larger one; from the distances above on, attention has.
# With a bias of 3 the LSTM keeps up over the whole sequence.
#
# What this shows is the state before training, for one layer and random tokens: where the signal to learn a long-range relation comes from.
# It does not show what training makes of it.
# An LSTM can learn to open its forget gates, and attention can learn to look at a few tokens rather than at all.
# That a short path makes long-range relations *easier to learn* is what [Vaswani et al. (2017)](#Sources) argue; notebook 03 puts it to the test on one task.

# %% [markdown]
# ## Recap
#
# - Attention is a soft lookup: scores of a query with all keys, a softmax over the keys, a weighted mean of the values.
# - Scores are divided by $\sqrt{d_k}$ because their variance grows with $d_k$, and a saturated softmax passes on little gradient.
# - A mask sets scores to $-\infty$, so that their weight is exactly 0; a row that sees nothing needs an answer of its own.
# - Heads are independent lookups of smaller width; their outputs stand side by side and are mixed by one more matrix.
# - Without positions, attention treats its input as a set.
# - It costs time of $O(T^2 d)$, and memory of $O(T^2)$ only where the map is kept; it connects any two tokens in one step.

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
# ### Exercise 1.1: Scores and their scale
#
# *(easy, 5 minutes)*
# Write `my_scores(q, k)`, which gives the score of every query with every key, as it enters the softmax.
# `q` is $[\ldots, T_q, d_k]$ and `k` is $[\ldots, T_k, d_k]$; the result is $[\ldots, T_q, T_k]$.
# The dots stand for any number of axes in front, or none.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# In the formula of *Scaled dot-product attention by hand*, the softmax stands around what you need.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# A matrix product pairs the last axis of its first factor with the last but one of its second.
# Which two axes of `k` must change places?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The scores are to have variance 1, so divide by the square root of the size of that axis over which the product sums.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_scores(q, k):
    """Scaled scores [..., Tq, Tk] of queries [..., Tq, d_k] with keys [..., Tk, d_k]."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))


# %% tags=["check"]
checks.attention_scores(my_scores)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.2: Softmax over the right axis
#
# *(easy, 5 minutes)*
# Write `my_weights(scores)`, which turns scores $[\ldots, T_q, T_k]$ into attention weights of the same shape.
# Try it without PyTorch's softmax, with `exp` and sums.
# Scores of 1000 must do no harm.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Each query has a weight of 1 to share out among the keys.
# Which axis do the keys stand on?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The exponentials make everything positive, and a division makes the sum 1.
# `keepdim=True` keeps the summed axis with size 1, so that the division broadcasts.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# $e^{1000}$ is infinite in single precision.
# Subtracting the same number from all scores of a row changes no weight; subtract the one that leaves 0 as the largest.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_weights(scores):
    """Weights [..., Tq, Tk]: positive, and each query's sum to 1."""
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


# %% tags=["check"]
checks.attention_weights(my_weights)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.3: A mask and its polarity
#
# *(medium, 10 minutes)*
# Write `my_masked_weights(scores, mask)`, which gives attention weights under a mask.
# `scores` is $[\ldots, T_q, T_k]$, and `mask` is boolean and broadcasts to that shape; True means "may attend".
# Every query may see at least one key, and the scores may be as low as $-30{,}000$.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Read again what *Masks* says about the score of a key that is hidden.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# `masked_fill` writes a number where a mask is True.
# Is that where you want to write?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The number must be below every score there can be, and there is one number like that: `float("-inf")`.
# Afterwards the softmax does the rest by itself.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_masked_weights(scores, mask):
    """Weights [..., Tq, Tk], 0 where the mask is False; each query's sum to 1."""
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)


# %% tags=["check"]
checks.masked_weights(my_masked_weights)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.4: From lengths to a padding mask
#
# *(easy, 5 minutes)*
# Write `my_padding_mask(lengths, max_len)`, which says where real tokens stand.
# `lengths` holds the lengths of $B$ sequences, as integers $[B]$; each is padded at its end to `max_len`.
# The result is boolean, $[B, T]$ with $T$ = `max_len`, and True where a token is real.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Write down on paper the row for a sequence of length 2 in a batch of width 4.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# `torch.arange(max_len)` gives the places 0, 1, 2, ...
# A place holds a real token if it passes one comparison with the length.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `lengths[:, None]` is $[B, 1]$, and a comparison of $[T]$ with $[B, 1]$ broadcasts to $[B, T]$.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_padding_mask(lengths, max_len):
    """Boolean [B, max_len]: True where a real token stands."""
    return torch.arange(max_len) < lengths[:, None]


# %% tags=["check"]
checks.padding_mask(my_padding_mask)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.5: A causal mask
#
# *(easy, 5 minutes)*
# Write `my_causal_mask(length)`, which hides the future: query $i$ may attend to the keys $0$ to $i$.
# The result is boolean, $[T, T]$ with queries in the rows, and True means "may attend".

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Write down the mask for three tokens.
# What does the first query see, and what does the last?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Either compare the place of each query with that of each key, or cut a triangle out of a matrix of ones.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `tril` keeps the lower triangle and `triu` the upper one, and both keep the diagonal unless you move it.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_causal_mask(length):
    """Boolean [length, length]: True on and below the diagonal."""
    return torch.ones(length, length, dtype=torch.bool).tril()


# %% tags=["check"]
checks.causal_mask(my_causal_mask)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.6: A query that sees nothing
#
# *(medium, 15 minutes)*
# Write `my_attention(q, k, v, mask)`, which gives the values $[\ldots, T_q, d_v]$ and copes with every mask.
# A query that may attend to nothing gets a vector of zeros.
# `mask` is boolean, $[\ldots, T_q, T_k]$, and True means "may attend".

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# You have all parts already: scores, a mask, a softmax, a mean of the values.
# First find out what the softmax makes of a row of which every score is $-\infty$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# `mask.any(dim=-1, keepdim=True)` tells which queries see at least one key.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Either let the NaN arise and replace it in the weights, before it reaches the values, or never hide a whole row and set its weights to 0 afterwards.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_attention(q, k, v, mask):
    """Values [..., Tq, d_v]; zeros for a query that may attend to nothing."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    sees_a_key = mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask & sees_a_key, float("-inf"))
    weights = scores.softmax(dim=-1).masked_fill(~sees_a_key, 0.0)
    return weights @ v


# %% tags=["check"]
checks.attend(my_attention)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.7: Splitting heads
#
# *(medium, 10 minutes)*
# Write `my_split(x, num_heads)`, which cuts tokens $[B, T, D]$ into heads $[B, H, T, D/H]$.
# Head 0 gets the first $D/H$ numbers of each token, head 1 the next ones, and so on.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Follow a single token.
# Its $D$ numbers become $H$ groups of $D/H$ neighbours: that is a change of the last axis alone.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Do it in two steps: first cut the last axis in two, then move an axis.
# A `reshape` never moves an axis.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# After the first step the shape is $[B, T, H, D/H]$.
# Which two axes must change places?
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_split(x, num_heads):
    """Heads [B, H, T, D/H] of tokens [B, T, D]."""
    batch, length, width = x.shape
    # your turn
    return x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)


# %% tags=["check"]
checks.split_heads(my_split)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.8: Merging heads
#
# *(medium, 10 minutes)*
# Write `my_merge(heads)`, which puts heads $[B, H, T, D/H]$ side by side again: $[B, T, D]$.
# It undoes the split of the last exercise.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Say in which order the numbers of one token have to stand in the end.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The two steps of the split, each undone, in the opposite order.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# After a `transpose` the numbers do not lie in memory in the order of the axes, so that `view` refuses; `reshape` and `flatten` copy them.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_merge(heads):
    """Tokens [B, T, D] of heads [B, H, T, D/H]."""
    return heads.transpose(1, 2).flatten(2)


# %% tags=["check"]
checks.merge_heads(my_merge)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.9: A test of equivariance
#
# *(medium, 10 minutes)*
# Write a test: `my_order_change(layer, x, order)` gives one number that is 0 if `layer` is equivariant for this order.
# `layer` is a function that maps tokens $[T, D]$ to tokens $[T, D]$; `order` is a permutation of 0 to $T-1$, and `x[order]` is the shuffled input.
# The number is the largest absolute difference between what comes out for the shuffled input and the shuffled output.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# There are two ways to the same place: shuffle and then apply the layer, or apply the layer and then shuffle.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Both ways shuffle by the same `order`, once each.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Take the difference of the two, without its sign, and of all its numbers the largest.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_order_change(layer, x, order):
    """Largest absolute difference between layer(shuffled x) and the shuffled layer(x)."""
    return (layer(x[order]) - layer(x)[order]).abs().max().item()


# %% tags=["check"]
checks.order_change(my_order_change)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.10: How sharp is a row?
#
# *(medium, 10 minutes)*
# Write `my_entropy(weights)`: the entropy of each row of weights $[\ldots, T_q, T_k]$, in nats.
# The result is $[\ldots, T_q]$.
# A weight may be exactly 0, and a row may be all zeros; such a row has entropy 0.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# The formula stands in *Why the scores are scaled*: $-\sum_j a_j \log a_j$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Towards what does $a \log a$ go when $a$ goes to 0?
# Put that number in where $a$ is 0.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Take the logarithm of a number that is harmless where the weight is 0 (`torch.where`, `clamp`), or look up `torch.special.entr`.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_entropy(weights):
    """Entropy [..., Tq] in nats of rows of weights [..., Tq, Tk]."""
    logarithms = torch.where(weights > 0, weights, 1.0).log()
    return -(weights * logarithms).sum(dim=-1)


# %% tags=["check"]
checks.entropy(my_entropy)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.11: What twice the length costs
#
# *(easy, 5 minutes)*
# A layer with 8 heads and one sequence of 4096 tokens takes 512 MiB for its attention weights in single precision, if they are written down.
# How many MiB does it take for 8192 tokens?

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# What shape do the weights of one layer have?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Check your way of counting on 4096 tokens first: it must give 512.
# One MiB is $1024^2$ bytes, and a number of single precision has 4.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Twice as many queries, and each of them has twice as many weights.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
weights_memory = 1 * 8 * 8192**2 * 4 / 1024**2

# %% tags=["check"]
checks.weights_memory(weights_memory)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.12: What eight times the length costs in time
#
# *(medium, 5 minutes)*
# In *What a layer costs*, `fits["time (ms)"][FUSED]` is the power $p$ of $T^p$ with which the time of fused attention grew.
# By what factor does the time grow, by this power, if a long sequence becomes eight times as long?

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Write the time of a sequence of length $T$ as $c \cdot T^p$ with a constant $c$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Divide the time for $8T$ by that for $T$.
# What becomes of $c$, and what of $T$?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# With $p = 1$ the factor would be 8, and with $p = 2$ it would be 64.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
eightfold_length = 8 ** fits["time (ms)"][FUSED]

# %% tags=["check"]
checks.eightfold_length(eightfold_length, power=fits["time (ms)"][FUSED])

# %% [markdown] tags=["exercise"]
# ### Exercise 1.13: What a missing scale does
#
# *(easy, 3 minutes)*
# You measured the entropy of the weights and the norm of the softmax's Jacobian, with and without the scale.
# What does a missing scale do to a wide layer before training?
#
# - **a** The scores overflow in single precision.
# - **b** The weights become uniform, so that every query sees the mean of all values.
# - **c** Nearly all weight falls on one key, and hardly any gradient passes through the softmax.
# - **d** The outputs become as large as the scores and drown the rest of the model.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Compare the two recorded entropies with $\log 16$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# An entropy near 0 and an entropy near $\log 16$ mean opposite things; which is which?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The Jacobian says how the weights answer to a small change of the scores.
# Look at its norm at the right end of the figure.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
why_scale = "c"

# %% tags=["check"]
checks.why_scale(why_scale)

# %% [markdown]
# ### Further
#
# These are small experiments without a check.
#
# 1. *(easy, 5 minutes)* In the worked example, which query would give *milk* most of the weight? Change it and run the cells again.
# 2. *(easy, 10 minutes)* Change `attention_by_hand` so that the softmax runs over the queries (`dim=-2`). Which sums are 1 now, and which of the comparisons in this notebook notices?
# 3. *(medium, 20 minutes)* Put `my_split`, `my_attention` and `my_merge` together into multi-head attention without a loop over heads. Check it against the library, as `multihead_by_hand` was.
# 4. *(hard, 30 minutes)* `nan_to_num` gives the right values for a row that sees nothing. Does it also give finite gradients? Compute them for queries and keys, and compare with `scaled_dot_product`.
#
# <a id="Sources"></a>
# ## Sources
#
# - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, Ł. Kaiser, I. Polosukhin (2017). *Attention Is All You Need.* NeurIPS. The formula, multi-head attention and the comparison of layers.
# - T. Dao, D. Y. Fu, S. Ermon, A. Rudra, C. Ré (2022). *FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness.* NeurIPS. Attention without a map in memory.
# - Y. Bengio, P. Simard, P. Frasconi (1994). *Learning Long-Term Dependencies with Gradient Descent is Difficult.* IEEE Transactions on Neural Networks 5(2). Gradients that vanish with distance.
# - S. Hochreiter, J. Schmidhuber (1997). *Long Short-Term Memory.* Neural Computation 9(8). The cell that keeps them from vanishing; its forget gate came later, with F. A. Gers, J. Schmidhuber, F. Cummins (2000), *Learning to Forget: Continual Prediction with LSTM*, Neural Computation 12(10).
# - R. Jozefowicz, W. Zaremba, I. Sutskever (2015). *An Empirical Exploration of Recurrent Network Architectures.* ICML. A forget bias of 1.
# - Y. Tay, M. Dehghani, D. Bahri, D. Metzler (2020). *Efficient Transformers: A Survey.* arXiv:2009.06732. Attention with a cost below quadratic.
# - P. Lippe. *Tutorial 6: Transformers and Multi-Head Attention.* UvA Deep Learning Tutorials. The course of topics, and the names of the classes.
