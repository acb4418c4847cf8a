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
# From there you measure what attention does: why its scores are scaled, what a mask does, what happens when the input is shuffled, and what it costs beside recurrence and convolution.
#
# **What you need to know.**
# Matrix products, the softmax function, and PyTorch tensors with more than two dimensions.
#
# **How long it takes.**
# Reading takes about 45 minutes.
# Running it takes a few seconds on a laptop; a GPU would not help.
#
# **Notation.**
#
# | symbol | meaning |
# | --- | --- |
# | $B$ | number of sequences in a batch |
# | $T$ | length of a sequence; $T_q$ and $T_k$ where queries and keys differ in number |
# | $H$ | number of attention heads |
# | $D$ | width of a token's vector in the model |
# | $d_k$, $d_v$ | width of a query or key, and of a value |
# | $Q, K, V$ | queries $[T_q, d_k]$, keys $[T_k, d_k]$ and values $[T_k, d_v]$, one in each row |

# %% tags=["parameters"]
profile: str = "quick"  # one of: quick, full; full measures more samples
seed: int = 42  # of the random numbers

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import plotting
from course_utils.attention import MultiheadAttention, regroup_per_head, scaled_dot_product
from course_utils.results import record

torch.manual_seed(seed)  # for the initial weights of the layers
generator = torch.Generator().manual_seed(
    seed
)  # on the CPU, so that the numbers are the same with and without a GPU
num_samples = {"quick": 2_000, "full": 50_000}[profile]

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

# %%
widths = [2**power for power in range(1, 11)]  # 2 to 1024
raw_variance, scaled_variance = [], []
for d_k in widths:
    queries = torch.randn(num_samples, d_k, generator=generator)
    keys = torch.randn(num_samples, d_k, generator=generator)
    dot_products = (queries * keys).sum(dim=-1)  # [num_samples]
    raw_variance.append(dot_products.var().item())
    scaled_variance.append((dot_products / math.sqrt(d_k)).var().item())

plotting.show(
    plotting.curves(
        widths,
        {"q · k": raw_variance, "q · k / √d_k": scaled_variance},
        xlabel="width d_k",
        ylabel="variance over random pairs",
        xscale="log",
        yscale="log",
        markers=True,
    ),
    alt="On logarithmic axes, the variance of the plain dot product rises along a "
    "straight line from 2 to about 1000; that of the scaled one stays at 1.",
)
log_widths, log_variance = torch.tensor(widths).log(), torch.tensor(raw_variance).log()
slope = torch.cov(torch.stack([log_widths, log_variance]))[0, 1] / log_widths.var()
record("variance_exponent", slope)
record("scaled_variance_mean", sum(scaled_variance) / len(scaled_variance))

# %% [markdown]
# The variance grows with $d_k$ to the power of the exponent above, which is 1 to within the noise of the sample.
# The scaled variance stays at 1.
#
# Why does it matter?
# Large scores drive the softmax to its ends: one weight near 1, the others near 0.
# There its gradient vanishes, and a query can hardly learn to look elsewhere.
# The next cell measures both, for 16 keys: the entropy of the weights, in nats, and the norm of the matrix of derivatives of the weights by the scores (the Jacobian).
# Entropy is $-\sum_j a_j \log a_j$ over the weights $a_j$ of a row; it is $\log 16$ for uniform weights and 0 when one key has all the weight.


# %%
def entropy_and_gradient(scores):
    """Mean entropy of softmax rows [N, 16] in nats; mean norm of the Jacobian diag(a) - a aᵀ."""
    weights = scores.softmax(dim=-1)
    jacobian = (
        torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
    )  # [N, 16, 16]
    return torch.special.entr(weights).sum(dim=-1).mean().item(), jacobian.norm(
        dim=(1, 2)
    ).mean().item()


entropy = {"plain": [], "scaled": []}
gradient = {"plain": [], "scaled": []}
for d_k in widths:
    queries = torch.randn(500, 1, d_k, generator=generator)
    keys = torch.randn(500, 16, d_k, generator=generator)
    plain = (queries * keys).sum(dim=-1)  # [500, 16]
    for name, scores in [("plain", plain), ("scaled", plain / math.sqrt(d_k))]:
        entropy_of_rows, gradient_of_rows = entropy_and_gradient(scores)
        entropy[name].append(entropy_of_rows)
        gradient[name].append(gradient_of_rows)

plotting.show(
    plotting.curves(
        widths,
        entropy,
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
    plotting.curves(
        widths,
        gradient,
        xlabel="width d_k",
        ylabel="norm of the softmax's Jacobian",
        xscale="log",
        markers=True,
    ),
    alt="Norm of the gradient of the weights against width. Without scaling it falls "
    "towards zero as the width grows; with scaling it stays the same.",
)
record("entropy_plain_1024", entropy["plain"][-1])
record("entropy_scaled_1024", entropy["scaled"][-1])
record("gradient_plain_1024", gradient["plain"][-1])
record("gradient_scaled_1024", gradient["scaled"][-1])

# %% [markdown]
# At width 1024 the unscaled softmax has almost made up its mind before any training, and its gradient is a fraction of the scaled one's.
# What this does not show: that training fails without the scale.
# It shows the state at the start, for random queries and keys; a model could learn smaller ones.

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
tampered = sentence.clone()
tampered[:, 4] = 100.0  # the padding token
with torch.no_grad():
    before = layer(sentence, token_mask=is_token[None])[:, :4]
    after = layer(tampered, token_mask=is_token[None])[:, :4]
    after_unmasked = layer(tampered)[:, :4]
record("padding_influence", (after - before).abs().max())
record("padding_influence_unmasked", (after_unmasked - before).abs().max())

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
#
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
# As a comparison, the next cell does the same after adding a different vector to each position.

# %%
order = torch.randperm(6, generator=generator)
position_vectors = torch.randn(6, 16, generator=generator)
with torch.no_grad():
    moved_with_input = layer(x[order][None])[0] - layer(x[None])[0][order]
    with_positions = (
        layer((x[order] + position_vectors)[None])[0]
        - layer((x + position_vectors)[None])[0][order]
    )
print("attention alone, equal to rounding:", moved_with_input.abs().max().item() < 1e-5)
record("difference_with_positions", with_positions.abs().max())

# %% [markdown]
# Attention alone follows the shuffle exactly.
# That is a virtue for sets, where order means nothing: notebook 04 relies on it.
# For a sequence it is a defect: "dog bites man" and "man bites dog" would be the same bag of words.
# Adding something that depends on the position breaks the symmetry, as the second number shows; notebook 02 says what to add.

# %% [markdown]
# ## Attention beside recurrence and convolution
#
# Three kinds of layer map a sequence $[T, d]$ to another one ([Vaswani et al., 2017](#Sources), table 1):
#
# | layer | multiplications | sequential steps | longest path between two tokens |
# | --- | --- | --- | --- |
# | self-attention | $O(T^2 \cdot d)$ | $O(1)$ | $O(1)$ |
# | recurrence | $O(T \cdot d^2)$ | $O(T)$ | $O(T)$ |
# | convolution, kernel $k$ | $O(k \cdot T \cdot d^2)$ | $O(1)$ | $O(T / k)$; $O(\log_k T)$ when dilated |
#
# The *sequential steps* limit how much a GPU can do at once: a recurrent layer must finish one token before it starts the next.
# The *longest path* is the number of layers or steps that a signal crosses from one token to another: the shorter it is, the easier a long-range relation is to learn.
#
# These are orders of growth and leave constants out.
# The next cell counts the multiplications that the table stands for, at width 512.

# %%
d, kernel = 512, 3
lengths = [2**power for power in range(4, 14)]  # 16 to 8192
operations = {
    "self-attention: T²·d": [length**2 * d for length in lengths],
    "recurrence: T·d²": [length * d**2 for length in lengths],
    f"convolution: k·T·d², k={kernel}": [kernel * length * d**2 for length in lengths],
}
plotting.show(
    plotting.curves(
        lengths,
        operations,
        xlabel="sequence length T",
        ylabel="multiplications",
        xscale="log",
        yscale="log",
        markers=True,
    ),
    alt="Multiplications against length on logarithmic axes. Self-attention rises twice "
    "as steeply as recurrence and convolution; it starts below both and crosses "
    "recurrence at T = 512 and convolution at T = 1536.",
)
attention_cost, recurrence_cost, _ = operations.values()
crossing = next(
    length
    for length, a, r in zip(lengths, attention_cost, recurrence_cost, strict=True)
    if a >= r
)
record("cheaper_than_recurrence_below", crossing)

# %% [markdown]
# Attention is the cheaper one as long as the sequence is shorter than the model is wide: the curves cross where $T = d$.
# Beyond that its quadratic growth takes over.
# Work on cheaper approximations starts from there; [Tay et al. (2020)](#Sources) survey it.
# The count leaves out what every layer spends on projections, and says nothing about memory or about how well a kernel uses the hardware.

# %% [markdown]
# ## Recap
#
# - Attention is a soft lookup: scores of a query with all keys, a softmax over the keys, a weighted mean of the values.
# - Scores are divided by $\sqrt{d_k}$ because their variance grows with $d_k$, and a saturated softmax passes on little gradient.
# - A mask sets scores to $-\infty$, so that their weight is exactly 0; a row that sees nothing needs an answer of its own.
# - Heads are independent lookups of smaller width; their outputs stand side by side and are mixed by one more matrix.
# - Without positions, attention treats its input as a set.
# - It costs $O(T^2 d)$ and connects any two tokens in one step.
#
# ## Exercises
#
# 1. *(easy, 5 minutes)* In the worked example, which query would give *milk* most of the weight? Change it and run the cells again.
# 2. *(easy, 10 minutes)* Change `attention_by_hand` so that the softmax runs over the queries (`dim=-2`). Which sums are 1 now, and which of the checks above notices?
# 3. *(medium, 15 minutes)* Write a mask for *local* attention: each query sees at most two tokens to either side. Draw it with `plotting.masks`.
# 4. *(medium, 15 minutes)* Rewrite `multihead_by_hand` without the loop over heads, by a reshape and a transpose. Check it against the library.
# 5. *(hard, 30 minutes)* `nan_to_num` gives the right values for a row that sees nothing. Does it also give finite gradients? Compute them for queries and keys, and compare with `scaled_dot_product`.
#
# <a id="Sources"></a>
# ## Sources
#
# - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, Ł. Kaiser, I. Polosukhin (2017). *Attention Is All You Need.* NeurIPS. The formula, multi-head attention and the comparison of layers.
# - Y. Tay, M. Dehghani, D. Bahri, D. Metzler (2020). *Efficient Transformers: A Survey.* arXiv:2009.06732. Attention with a cost below quadratic.
# - P. Lippe. *Tutorial 6: Transformers and Multi-Head Attention.* UvA Deep Learning Tutorials. The course of topics, and the names of the classes.
