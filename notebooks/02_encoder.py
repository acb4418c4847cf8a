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
# # The encoder
#
# **What you will build.**
# You put attention into an encoder block, with its residual connections, layer norms and feed-forward network, and stack blocks into an encoder.
# You show that yours equals the course's library and PyTorch's own layer.
# You give the tokens positions and the optimizer a schedule, and you train the result: first in a loop of ten lines of PyTorch, then as a Lightning module that does the same.
# At the end you measure two things that are often told: that warm-up keeps a deep encoder from failing, and that clipping gradients steadies training.
#
# **What you need to know.**
# Notebook 01, and how to train a network with an optimizer in PyTorch.
#
# **How long it takes.**
# Reading takes about an hour.
# Running it takes about half a minute on a laptop; a GPU would not help with models this small.
#
# **Notation.**
#
# | symbol | meaning |
# | --- | --- |
# | $B$, $T$ | number of sequences in a batch, and their length |
# | $D$ | width of a token's vector; $H$ heads share it |
# | $X$ | the tokens of one sequence, $[T, D]$, one in each row |
# | $p$ | position of a token, from 0 |
# | $\eta$ | learning rate |

# %% tags=["parameters"]
profile: str = "quick"  # one of: quick, full; full repeats the measurements with more seeds
seed: int = 42  # of the random numbers

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

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim

from course_utils import diagrams, interactive, plotting
from course_utils.attention import MultiheadAttention, regroup_per_head
from course_utils.encoder import EncoderBlock, PositionalEncoding, TransformerEncoder
from course_utils.predictor import TransformerPredictor
from course_utils.results import record
from course_utils.schedule import CosineWarmupScheduler

torch.set_num_threads(
    1
)  # for models this small, handing work to other threads costs more than the work
torch.manual_seed(seed)
generator = torch.Generator().manual_seed(
    seed
)  # on the CPU, so that the numbers are the same with and without a GPU
num_repeats = {"quick": 10, "full": 50}[profile]
seeds = range(seed, seed + num_repeats)  # of repeated measurements

# %% [markdown]
# ## Four parts of a block
#
# The original Transformer translates: an encoder reads one sentence, a decoder writes the other.
# The drawing shows both, with the part that you build here in colour.

# %%
diagrams.show("architecture")

# %% [markdown]
# An encoder block maps tokens $X$ of shape $[T, D]$ to tokens of the same shape, in two steps ([Vaswani et al., 2017](#Sources), section 3.1):
#
# $$X' = \text{LayerNorm}\big(X + \text{MultiHead}(X)\big)$$
# $$Y = \text{LayerNorm}\big(X' + \text{FFN}(X')\big)$$
#
# In the first step the tokens exchange information, in the second each token is processed on its own.
# Around each step stand a **residual connection**, the "$X +$", and a **layer norm**.
# The next sections take the parts one by one and ask what goes wrong without them.

# %% [markdown]
# ### Residual connections keep the tokens apart
#
# **Claim.** Attention alone averages tokens until all are alike; the residual connection lets each keep its identity.
#
# Each output of attention is a weighted mean, and means of means move closer to each other.
# [Dong et al. (2021)](#Sources) prove that without residuals a stack of attention layers loses rank doubly exponentially with depth.
# The claim would be refuted if tokens stayed as different without residuals as with them.
#
# The measurement: 12 untrained attention layers, each followed by a layer norm, once with "$X +$" and once without.
# After each layer you take the mean cosine similarity between two tokens: 1 means that they point in the same direction.
# The figure shows the median over networks with other random weights, and the range from the lowest to the highest.

# %%
from course_utils.experiments import residuals

layers = range(residuals.DEPTH + 1)
with_residual = np.array(residuals.over_seeds(seeds, residual=True))  # [seeds, layers]
without_residual = np.array(residuals.over_seeds(seeds, residual=False))
plotting.show(
    plotting.curves_with_spread(
        layers,
        {"with residual": with_residual, "without": without_residual},
        xlabel="attention layers passed",
        ylabel="cosine similarity of two tokens",
        markers=True,
    ),
    alt="Similarity of tokens against depth. Without residual connections it reaches 1 "
    "after two layers in every network; with them it rises layer by layer, and after "
    "twelve it lies below 1, at different heights in different networks.",
)
record("similarity_with_residual", np.median(with_residual[:, -1]))
record("similarity_without_residual", without_residual[:, -1].min())
for label, runs in {"with residual": with_residual, "without": without_residual}.items():
    last = runs[:, -1]
    print(
        f"{label}: {last.min():.2f} to {last.max():.2f} after {residuals.DEPTH} layers, "
        f"over {len(seeds)} networks"
    )

# %% [markdown]
# Without residuals the tokens are all but equal within a few layers, and no later layer can tell them apart again.
# With residuals they grow more alike much more slowly.
#
# How slowly depends on how large the output of attention is beside the token that it is added to.
# To see this, multiply the weights that make the values by a factor.

# %%
gains = {
    f"values × {gain:g}": np.array(
        residuals.over_seeds(seeds, residual=True, value_gain=gain)
    )
    for gain in (0.25, 1, 4)
}
plotting.show(
    plotting.curves_with_spread(
        layers,
        gains,
        xlabel="attention layers passed",
        ylabel="cosine similarity of two tokens",
        markers=True,
        legend_beside=True,
    ),
    alt="Similarity of tokens against depth, with residual connections and values of three "
    "sizes. With values four times smaller the tokens stay apart over all twelve layers; "
    "with values four times larger they are all alike after five.",
)
small, _, large = gains.values()
record("similarity_with_small_values", np.median(small[:, -1]))
record("similarity_with_large_values", np.median(large[:, -1]))

# %% [markdown]
# So the claim holds, with a condition: a residual connection keeps tokens apart as long as attention does not drown it.
# Without a residual the factor changes nothing, for layer norm divides it out again.
#
# What this does not show: the weights are random and the feed-forward networks are left out, so it shows where learning starts, not where it ends.
# Training can make the values larger or smaller.
# You meet tokens that have become all alike again at the end of this notebook, in models that failed to learn.

# %% [markdown]
# ### Layer norm keeps the scale
#
# A layer norm brings each token, on its own, to mean 0 and variance 1 over its $D$ dimensions, then scales and shifts each dimension by learned numbers $\gamma$ and $\beta$, both of shape $[D]$:
#
# $$\text{LayerNorm}(x) = \gamma \odot \frac{x - \text{mean}(x)}{\sqrt{\text{var}(x) + \epsilon}} + \beta$$
#
# Unlike batch norm, it never looks at other tokens or other sequences.
# So it does not care how long a sequence is or how large a batch, and it does the same in training and evaluation.


# %%
def layer_norm_by_hand(x, gamma, beta, epsilon=1e-5):
    mean = x.mean(dim=-1, keepdim=True)  # [..., 1]: of each token
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gamma * (x - mean) / (variance + epsilon).sqrt() + beta


x = 3 + 5 * torch.randn(2, 7, 64, generator=generator)
norm = nn.LayerNorm(64)
torch.testing.assert_close(layer_norm_by_hand(x, norm.weight, norm.bias), norm(x))


def scale_over_depth(normalise, depth=12):
    """Root mean square of the tokens' entries after each residual attention layer."""
    x = torch.randn(1, 16, 64, generator=generator)
    scales = []
    for _ in range(depth + 1):
        scales.append(x.square().mean().sqrt().item())
        x = x + MultiheadAttention(64, 64, num_heads=4)(x)
        x = x + nn.Linear(64, 64)(x).relu()
        x = F.layer_norm(x, [64]) if normalise else x
    return scales


with torch.no_grad():
    scales = {
        "without layer norm": scale_over_depth(normalise=False),
        "with": scale_over_depth(normalise=True),
    }
plotting.show(
    plotting.curves(
        range(13),
        scales,
        xlabel="blocks passed",
        ylabel="root mean square of a token",
        yscale="log",
        markers=True,
    ),
    alt="Scale of the tokens against depth, on a logarithmic axis. Without layer norm it "
    "grows with each block; with layer norm it stays at 1.",
)
record("scale_without_norm", scales["without layer norm"][-1])
record("scale_with_norm", scales["with"][-1])

# %% [markdown]
# Residual sums add up: without a norm the tokens grow from block to block, and the scores of attention with them.
# With the norm after each sum (**post-norm**, as in the original paper) every block sees the same scale.
# The other order, **pre-norm**, normalises the input of each part and leaves the sum alone: $X' = X + \text{MultiHead}(\text{LayerNorm}(X))$.
# [Xiong et al. (2020)](#Sources) show that its gradients are better behaved at the start of training.
# The course's layers do both, by the argument `norm_first`.

# %% [markdown]
# ### The feed-forward network thinks about one token at a time
#
# Given its weights, attention only averages: its output is linear in the values.
# The feed-forward network is where a token goes through a non-linear function: a linear layer that widens it, a ReLU, and a linear layer back to width $D$.
# The same network runs on each token, and no token sees another.

# %%
ffn = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
tokens = torch.randn(1, 5, 64, generator=generator)
changed = tokens.clone()
changed[0, 0] += 1.0  # another first token
with torch.no_grad():
    moved = (ffn(changed) - ffn(tokens)).abs().amax(dim=-1)[0]  # [T]
print(
    "tokens whose output changed:",
    [position for position in range(5) if moved[position] > 1e-6],
)

block = EncoderBlock(input_dim=64, num_heads=4, dim_feedforward=128)
sizes = {
    name: sum(p.numel() for p in part.parameters()) for name, part in block.named_children()
}
print("parameters of a block:", {name: size for name, size in sizes.items() if size})
record("feed_forward_share", sizes["linear_net"] / sum(sizes.values()))

# %% [markdown]
# With a hidden layer of twice the width, as here, the feed-forward network holds about half of a block's parameters.
# The original paper makes it four times as wide.

# %% [markdown]
# ## The block and the stack by hand
#
# Now put the parts together.
# The function below takes the weights of a library block and does the two steps of the formula.


# %%
def block_by_hand(x, block):
    """Post-norm encoder block over x [B, T, D], with the weights of an EncoderBlock."""
    x = block.norm1(x + block.self_attn(x))
    widen, _, _, narrow = (
        block.linear_net
    )  # linear, dropout, ReLU, linear; without dropout here
    return block.norm2(x + narrow(widen(x).relu()))


x = torch.randn(3, 10, 64, generator=generator)
encoder = TransformerEncoder(num_layers=2, input_dim=64, num_heads=4, dim_feedforward=128)
with torch.no_grad():
    first, second = encoder.layers
    torch.testing.assert_close(block_by_hand(x, first), first(x))
    torch.testing.assert_close(block_by_hand(block_by_hand(x, first), second), encoder(x))
print("input", list(x.shape), "output", list(encoder(x).shape))

# %% [markdown]
# PyTorch has the same block as `nn.TransformerEncoderLayer`.
# To compare, carry its weights over; only the projections of the attention need regrouping, as in notebook 01.


# %%
def copy_from_pytorch(theirs, ours):
    """Give an EncoderBlock the weights of an nn.TransformerEncoderLayer."""
    heads = ours.self_attn.num_heads
    with torch.no_grad():
        ours.self_attn.qkv_proj.weight.copy_(
            regroup_per_head(theirs.self_attn.in_proj_weight, heads)
        )
        ours.self_attn.qkv_proj.bias.copy_(
            regroup_per_head(theirs.self_attn.in_proj_bias, heads)
        )
    ours.self_attn.o_proj.load_state_dict(theirs.self_attn.out_proj.state_dict())
    ours.linear_net[0].load_state_dict(theirs.linear1.state_dict())
    ours.linear_net[3].load_state_dict(theirs.linear2.state_dict())
    ours.norm1.load_state_dict(theirs.norm1.state_dict())
    ours.norm2.load_state_dict(theirs.norm2.state_dict())


for norm_first in (False, True):
    theirs = nn.TransformerEncoderLayer(
        64, 4, 128, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    ours = EncoderBlock(64, 4, 128, norm_first=norm_first)
    copy_from_pytorch(theirs, ours)
    torch.testing.assert_close(ours(x), theirs(x))
    print(f"norm_first={norm_first}: equal to PyTorch's layer")

# %% [markdown]
# ## Positions
#
# Notebook 01 showed that attention treats its input as a set.
# A **positional encoding** adds to each token a vector that depends on its position $p$ alone.
# The original paper takes sines and cosines of falling frequencies:
#
# $$PE_{p,\,2i} = \sin\left(\frac{p}{10000^{2i/D}}\right) \qquad PE_{p,\,2i+1} = \cos\left(\frac{p}{10000^{2i/D}}\right)$$
#
# Here $i$ counts pairs of dimensions from 0, and $PE$ is $[T, D]$.
# Every pair is a clock hand: it turns by the angle $1 / 10000^{2i/D}$ with each position, the first fast and the last hardly at all.

# %%
d_model = 48
encoding = PositionalEncoding(d_model, max_len=20_000).pe[0]  # [20000, 48]
plotting.show(
    plotting.heatmap(
        encoding[:96].T,
        xlabel="position",
        ylabel="dimension",
        colour_label="encoding",
        title="Positional encoding",
    ),
    alt="Heat map of the encoding: 48 dimensions against 96 positions. The first "
    "dimensions oscillate from position to position, the last ones hardly change.",
)

# %%
plotting.show(
    plotting.position_curves(encoding[:48], dimensions=[0, 1, 8, 16]),
    alt="Four dimensions as curves over 48 positions. Dimensions 0 and 1 are a sine and a "
    "cosine of the same fast wave; dimensions 8 and 16 are slower sines.",
)

pairs = torch.arange(d_model // 2)
wavelengths = 2 * math.pi * 10000 ** (2 * pairs / d_model)
record("wavelength_ratio", wavelengths[1] / wavelengths[0])
print(f"wavelengths: from {wavelengths[0]:.2f} to {wavelengths[-1]:.0f} positions")

# %% [markdown]
# What can you read off?
#
# - Each column is different, so each position has a name of its own.
# - Neighbouring pairs differ in wavelength by the constant factor $10000^{2/D}$, recorded above. The longest wavelength is $2\pi \cdot 10000^{(D-2)/D}$ positions.
# - All values lie between −1 and 1, whatever the position, so that the encoding does not drown the token.
#
# **Claim.** The encoding of position $p + k$ is a linear function of that of $p$, the same for all $p$: a rotation.
# A layer that has learned "the token $k$ places back" for one position has thus learned it for all.
#
# The measurement fits a matrix $M$ of shape $[D, D]$ by least squares, so that $PE_{p+k} \approx M\, PE_p$ for all positions at once.
# A rotation is orthogonal, $M^\top M = I$, and has determinant 1.
# Its eigenvalues are $e^{\pm i\alpha}$, and here the angles $\alpha$ must be those by which the clock hands turn, $k / 10000^{2i/D}$.
# The claim would be refuted by a fit that leaves errors, a matrix that is not orthogonal, or other angles.

# %%
from course_utils.experiments.positions_rotation import fitted_shift, rotation

measured = {offset: rotation(d_model, offset) for offset in (1, 5, 20, 100)}
print("largest differences, D = 48")
print(
    f"{'k':>4} {'of the fit':>11} {'of MᵀM from I':>14} {'determinant':>12} {'of the angles':>14}"
)
for offset, of in measured.items():
    print(
        f"{offset:4} {of['error']:11.5f} {of['from_orthogonal']:14.4f} "
        f"{of['determinant']:12.4f} {of['from_angles']:10.5f} rad"
    )
record("angles_differ_by", max(of["from_angles"] for of in measured.values()))
record("fit_differs_by", max(of["error"] for of in measured.values()))

# %% [markdown]
# For every $k$ the fit is exact to rounding, and the matrix is the rotation of the formula.
#
# For an odd width $D$ the last sine has no cosine beside it.
# By the addition theorem $\sin(a + b) = \sin a \cos b + \cos a \sin b$, so the shifted sine needs the missing cosine, times the sine of the angle turned.

# %%
_, errors = fitted_shift(5, offset=5)  # [D]: of each dimension, over all positions
missing = math.sin(5 / 10000 ** (4 / 5))
print("D = 5, k = 5, largest error of each dimension:", [f"{e:.4f}" for e in errors])
print(f"sine of the angle by which the last one turns: {missing:.4f}")
record("odd_width_error", errors[-1])
_, errors = fitted_shift(49, offset=5)
print(f"D = 49: largest error {errors.max():.4f}")

# %% [markdown]
# The whole pairs still turn; only the last dimension is off, and by just that term.
# In a wide encoding the last wave is so slow that over these positions the waves beside it can stand in for the missing cosine: an odd width then costs nothing that one could measure.
# The same slowness sets a limit to the measurement: at a width of 64 or more, 20,000 positions in single precision do not tell the slowest waves apart, so a fit is as exact but no longer unique.
#
# How alike are two encodings?

# %%
similarity = (encoding @ encoding[100]) / (d_model / 2)  # [20000]: with position 100
plotting.show(
    plotting.curves(
        range(-60, 61),
        {"similarity": similarity[40:161]},
        xlabel="distance in positions",
        ylabel="dot product, relative to distance 0",
    ),
    alt="Dot product of two encodings against their distance: a peak of 1 at distance 0, "
    "a fall to either side, and then ripples between 0.4 and 0.7; symmetric.",
)
record("similarity_at_distance_1", similarity[101])
record("similarity_at_distance_10", similarity[110])

# %% [markdown]
# The dot product of two encodings depends only on their distance.
# It is largest for close positions, but it does not fall steadily: where the fast waves come into step again, it rises a little.
# It is symmetric, so the dot product alone does not tell before from after; learned projections can.

# %% [markdown]
# ## Warm-up and cosine decay
#
# Transformers are commonly trained with a learning rate that first climbs from 0 and then decays.
# The course scales the highest learning rate $\eta$ by
#
# $$f(s) = \min\left(1, \frac{s}{W}\right) \cdot \frac{1}{2}\left(1 + \cos\frac{\pi s}{M}\right)$$
#
# where $s$ counts optimizer steps, $W$ is the number of steps of warm-up, and $M$ is the step at which the rate reaches 0, where it stays.
# (The original paper decays with the inverse square root of the step instead.)
#
# Why climb?
# Adam divides each gradient by an estimate of its size, and in the first steps this estimate rests on few samples, so the steps vary wildly ([Liu et al., 2019](#Sources)).
# In a post-norm Transformer the gradients near the output are also large at the start ([Xiong et al., 2020](#Sources)).
# Small first steps are to keep both from throwing the weights far off.
# These reasons rest on the papers.
# [Below](#Does-warm-up-prevent-divergence?) you measure whether warm-up is needed, and where.

# %%
parameter = nn.Parameter(torch.zeros(1))
schedules = {
    f"W = {warmup}": CosineWarmupScheduler(
        optim.Adam([parameter], lr=1.0), warmup=warmup, max_iters=2000
    )
    for warmup in (0, 100, 500)
}
steps = range(0, 2401, 10)
plotting.show(
    plotting.curves(
        steps,
        {
            label: [schedule.get_lr_factor(step) for step in steps]
            for label, schedule in schedules.items()
        },
        xlabel="optimizer step",
        ylabel="factor on the learning rate",
    ),
    alt="The factor against the step for warm-ups of 0, 100 and 500 steps: a linear "
    "climb, then half a cosine down to 0 at step 2000, and 0 from there on.",
)

# %% [markdown]
# Move the sliders below to see what each number does to the learning rate.

# %%
interactive.show(
    interactive.warmup_schedule(warmup=100, max_iters=2000, lr=1e-3, longest=2400)
)

# %% [markdown]
# ## A training loop in ten lines
#
# Time to train something.
# The task: each token is to name the token **before** it (the first one names the last).
# It needs attention, since the answer stands elsewhere, and positions, since "before" is a matter of order.


# %% tags=["trained"]
def shift_batch(batch_size, generator):
    """One-hot sequences [B, 10, 8] of digits from 0 to 7, and the digit before each [B, 10]."""
    digits = torch.randint(8, (batch_size, 10), generator=generator)
    return F.one_hot(digits, num_classes=8).float(), digits.roll(1, dims=-1)


num_steps = 200
model_args = {
    "input_dim": 8,
    "model_dim": 32,
    "num_classes": 8,
    "num_heads": 1,
    "num_layers": 1,
    "lr": 1e-2,
    "warmup": 30,
}


def train_in_a_loop(add_positional_encoding=True):
    """Train a small model; return it with the loss of each step."""
    torch.manual_seed(seed)
    data = torch.Generator().manual_seed(seed)
    model = TransformerPredictor(max_iters=num_steps, **model_args)
    optimizer = optim.Adam(model.parameters(), lr=model_args["lr"])
    schedule = CosineWarmupScheduler(
        optimizer, warmup=model_args["warmup"], max_iters=num_steps
    )
    losses = []
    for _ in range(num_steps):
        x, target = shift_batch(64, data)
        logits = model(x, add_positional_encoding=add_positional_encoding)  # [B, T, C]
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # after every step of the optimizer
        losses.append(loss.item())
    return model.eval(), losses


def accuracy(model, add_positional_encoding=True):
    """Share of right tokens on sequences that were not trained on."""
    x, target = shift_batch(5000, torch.Generator().manual_seed(seed + 1))
    with torch.no_grad():
        return (
            (
                model(x, add_positional_encoding=add_positional_encoding).argmax(dim=-1)
                == target
            )
            .float()
            .mean()
        )


model, losses = train_in_a_loop()
model_without, losses_without = train_in_a_loop(add_positional_encoding=False)
record("shift_acc", accuracy(model))
record(
    "shift_acc_without_positions", accuracy(model_without, add_positional_encoding=False)
)

# %% tags=["trained"]
plotting.show(
    plotting.curves(
        range(1, num_steps + 1),
        {"with positions": losses, "without": losses_without},
        xlabel="optimizer step",
        ylabel="loss (nats a token)",
        yscale="log",
        reference=(math.log(8), "guessing"),
    ),
    alt="Loss against step. With positional encoding it falls by more than two orders of "
    "magnitude; without it, it stays near the loss of guessing.",
)

# %% [markdown]
# With positions the model solves the task.
# Without them it cannot: every order of the same tokens looks alike to it, and the best it can do is to name a token that is common in the sequence.

# %% tags=["trained"]
x, _ = shift_batch(1, torch.Generator().manual_seed(seed))
digits = x[0].argmax(dim=-1).tolist()
attention = model.get_attention_maps(x)[0][0]  # [H, T, T] of the only layer
plotting.show(
    plotting.attention_maps([attention], queries=digits),
    alt="Attention map of the trained model on one sequence: most of the weight lies just "
    "left of the diagonal, and in the first row on the last token.",
)
before = torch.arange(10).roll(1)
record("weight_on_previous_token", attention[0, torch.arange(10), before].mean())

# %% [markdown]
# The map shows how: each query puts its weight on the token before it.

# %% [markdown]
# ## The same as a Lightning module
#
# The loop has two kinds of code.
# One kind is about *this* model: what a batch is, the loss, the optimizer.
# The other is the same for every model: zeroing gradients, stepping, moving to a GPU, logging, saving.
# Lightning keeps the first kind in a module and does the second for you.
# The library's `TransformerPredictor` already is such a module; a subclass only says what to do with a batch.


# %% tags=["trained"]
import pytorch_lightning as pl
from torch.utils.data import DataLoader

from course_utils.training import quiet_lightning


class ShiftPredictor(TransformerPredictor):
    """Names the token before each token."""

    def training_step(self, batch, batch_idx):
        x, target = batch
        loss = F.cross_entropy(self(x).flatten(0, 1), target.flatten())
        lightning_losses.append(loss.item())
        return loss


def fit_with_lightning(model):
    """Train for one epoch on the same batches as in the loop above."""
    data = torch.Generator().manual_seed(seed)
    batches = [shift_batch(64, data) for _ in range(num_steps)]
    with quiet_lightning():  # silences what Lightning says of devices and workers
        trainer = pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(
            model, DataLoader(batches, batch_size=None)
        )  # batch_size=None: these are batches already
    return model.eval()


lightning_losses = []
torch.manual_seed(seed)
lightning_model = ShiftPredictor(max_iters=num_steps, **model_args)
fit_with_lightning(lightning_model)
torch.testing.assert_close(lightning_losses, losses, rtol=1e-3, atol=1e-4)
record("lightning_acc", accuracy(lightning_model))

# %% [markdown]
# The losses of the two runs agree at every step.
#
# One line deserves attention.
# In the loop, `schedule.step()` stands inside the loop over batches: the schedule counts **optimizer steps**.
# Lightning by default steps a schedule once an epoch.
# With one epoch, as here, the learning rate would then never leave its first value, which is 0 under warm-up, and the model would learn nothing.
# `TransformerPredictor.configure_optimizers` therefore asks for `"interval": "step"`.
# The next cell shows the difference.


# %% tags=["trained"]
class SteppedEachEpoch(ShiftPredictor):
    """The same module, with its schedule stepped once an epoch."""

    def configure_optimizers(self):
        configuration = super().configure_optimizers()
        configuration["lr_scheduler"]["interval"] = "epoch"
        return configuration


torch.manual_seed(seed)
never_warm = SteppedEachEpoch(max_iters=num_steps, **model_args)
fit_with_lightning(never_warm)
record("acc_stepped_each_epoch", accuracy(never_warm))

# %% [markdown]
# ## Does warm-up prevent divergence?
#
# **Question.** Warm-up is often called crucial for the original, post-norm Transformer.
# [Xiong et al. (2020)](#Sources) could not train their post-norm translation models of six layers without it, and could train pre-norm ones.
# Is it so here, and where?
#
# The answer "yes" would be refuted if runs without warm-up learnt as often as runs with it, at every depth and every learning rate.
#
# The measurement: the shift task again, with the number of layers and the highest learning rate varied, three seeds each.
# One arm climbs for the first 80 of 400 steps, the other does not; everything else is the same, the cosine decay included.
# A run has **learnt** if its loss ends below half of that of guessing, $\ln 8$, and is **stuck** if it ends within 5 % of guessing.
#
# All runs together take several minutes, so their results are saved with the course, and the figure draws those.
# `python -m course_utils.experiments.warmup` makes them anew.

# %%
from course_utils.experiments import shift_task, warmup

committed = warmup.recorded()
runs_of = {
    (cell["arm"], cell["depth"], cell["rate"]): cell["runs"]
    for cell in committed["measured"]
}
print({name: committed["made"][name] for name in ("command", "seeds", "steps", "warmup")})
middle_of_each_point = (
    np.arange(warmup.STEPS // warmup.EVERY) * warmup.EVERY + warmup.EVERY / 2
)


def curves_of(arms, depth, rate):
    """The recorded losses of each arm, [seeds, points]."""
    return {arm: [run["losses"] for run in runs_of[arm, depth, rate]] for arm in arms}


plotting.show(
    plotting.curve_grid(
        middle_of_each_point,
        {
            f"layers: {depth}, rate {rate:g}": curves_of(
                ["post-norm", "post-norm, warm-up"], depth, rate
            )
            for depth in warmup.DEPTHS
            for rate in warmup.RATES
        },
        columns=len(warmup.RATES),
        xlabel="optimizer step",
        ylabel="loss (nats)",
        yscale="log",
        reference=(shift_task.GUESSING, "guessing"),
    ),
    alt="Loss curves of post-norm models with and without warm-up, in nine panels: 1, 6 and "
    "12 layers, highest rates of 0.001, 0.003 and 0.01. With one layer, and at the lowest "
    "rate, the loss falls in both arms, a little later with warm-up. With six layers at the "
    "highest rate and twelve at the middle one, runs without warm-up stay at guessing and "
    "runs with it learn. With twelve layers at the highest rate all stay there.",
)

# %%
print("runs that learnt, and their mean final loss in nats")
heads = {arm: arm.replace("-norm", "").replace("warm-up", "W") for arm in warmup.ARMS}
print(f"{'layers':>6} {'rate':>6} " + "".join(f"{head:>14}" for head in heads.values()))
for depth in warmup.DEPTHS:
    for rate in warmup.RATES:
        cells = [warmup.counted(runs_of[arm, depth, rate]) for arm in warmup.ARMS]
        shown = [f"{cell['learnt']:.0%} {cell['mean']:.4f}" for cell in cells]
        print(f"{depth:6} {rate:6g} " + "".join(f"{text:>14}" for text in shown))

for depth, rate in [(1, 0.001), (6, 0.01), (12, 0.01)]:
    print(f"\nlayers: {depth}, rate {rate:g}: final loss, mean (lowest to highest)")
    for arm in warmup.ARMS:
        cell = warmup.counted(runs_of[arm, depth, rate])
        print(
            f"  {arm}: {cell['mean']:.4f} ({cell['lowest']:.4f} to {cell['highest']:.4f})"
        )
record("learnt_without_warmup", warmup.counted(runs_of["post-norm", 6, 0.01])["learnt"])
record(
    "learnt_with_warmup", warmup.counted(runs_of["post-norm, warm-up", 6, 0.01])["learnt"]
)

# %% [markdown]
# **Where it makes no difference:** with one layer, and at the lowest rate with six and twelve.
# Runs without warm-up learn there as well, and are a little ahead, since they lose no steps to a small rate.
#
# **Where it decides:** with six layers at the highest rate, and with twelve at the middle one.
# No run without warm-up learns, and every run with it does.
#
# **Where it is not enough:** with twelve layers at the highest rate the runs with warm-up are stuck too, or all but.
#
# So warm-up buys a post-norm model a few times more depth or rate; it is not needed everywhere, and does not help everywhere.
# A lower rate is the other remedy, and the usual telling leaves it out.
# What this does not show: how it is with other tasks and widths, or with a longer warm-up.
# A cell rests on three seeds, and where the outcome changes, as with six layers at the middle rate, seeds differ.
#
# The two remedies of the papers are in the table as well: the other order of the norms, and RAdam, an Adam that corrects the variance of its first steps.

# %%
plotting.show(
    plotting.curve_grid(
        middle_of_each_point,
        {
            f"layers: {depth}, rate {rate:g}": curves_of(
                ["pre-norm", "pre-norm, warm-up", "post-norm, RAdam"], depth, rate
            )
            for rate in (0.001, 0.01)
            for depth in warmup.DEPTHS
        },
        columns=len(warmup.DEPTHS),
        xlabel="optimizer step",
        ylabel="loss (nats)",
        yscale="log",
        reference=(shift_task.GUESSING, "guessing"),
    ),
    alt="Loss curves of pre-norm models with and without warm-up, and of post-norm models "
    "trained with RAdam, for 1, 6 and 12 layers at rates of 0.001 and 0.01. At the lower "
    "rate pre-norm learns everywhere and RAdam hardly begins. At the higher rate RAdam "
    "learns everywhere; with twelve layers two of three pre-norm runs without warm-up stay "
    "at guessing, and with warm-up all learn.",
)


def rectification(step, beta=0.999):
    """The factor by which RAdam shortens its steps (Liu et al., 2019, algorithm 2)."""
    longest = 2 / (1 - beta) - 1
    length = longest - 2 * step * beta**step / (1 - beta**step)
    return math.sqrt(
        (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    )


for step in (10, 100, 400, 4000):
    print(f"RAdam's factor at step {step}: {rectification(step):.2f}")
record("radam_factor_at_400", rectification(400))

# %% [markdown]
# **Pre-norm** learns in cells where post-norm is stuck, with no warm-up at all.
# It is not immune: with twelve layers at the highest rate most of its runs without warm-up are stuck, and all with it learn.
#
# **RAdam** without warm-up is never stuck, not even in the cell in which warm-up is not enough.
# The price is speed: its factor, printed above, has not reached one half when the run ends, so at the lowest rate it hardly begins.
# It has, in effect, a long warm-up built in.
#
# ### What a stuck model looks like
#
# Look at the tokens as they leave the last block, and take the similarity of two tokens of one sequence once more.

# %%
every_run = [  # those of RAdam that end near guessing are slow, not stuck
    run for (arm, _, _), runs in runs_of.items() if "RAdam" not in arm for run in runs
]
stuck = [run["similarity"] for run in every_run if run["final_loss"] > warmup.STUCK]
learnt = [run["similarity"] for run in every_run if run["final_loss"] < warmup.LEARNT]
print(f"{len(learnt)} runs that learnt: similarity {min(learnt):.2f} to {max(learnt):.2f}")
print(f"{len(stuck)} runs that are stuck: similarity {min(stuck):.2f} to {max(stuck):.2f}")
record("similarity_when_stuck", np.median(stuck))
record("similarity_when_learnt", np.median(learnt))

# %% [markdown]
# In a stuck model all tokens leave the encoder alike, in spite of the residual connections and the positions.
# The output network then gives every token the same answer, and the best such answer is guessing.
# The loss does not run off to infinity: "divergence" here is a collapse onto one point.
#
# At the beginning of this notebook, attention that was large beside the residual made tokens alike.
# Does that happen here?
# Watch six layers at rate 0.01 over their first steps: how long is the output of attention, relative to the token that it is added to?

# %% tags=["trained"]
from course_utils.experiments import first_steps

seen = {
    label: [first_steps.first_steps(warmup=steps, seed=run) for run in seeds[:3]]
    for label, steps in {"without warm-up": 0, "with warm-up": warmup.WARMUP}.items()
}
plotting.show(
    plotting.curves_with_spread(
        range(first_steps.STEPS + 1),
        {label: [run["share"] for run in runs] for label, runs in seen.items()},
        xlabel="optimizer step",
        ylabel="length of attention's output\nrelative to the token",
        reference=(1, "as long as the token"),
    ),
    alt="Length of attention's output relative to the token it is added to, over the first "
    "40 steps. Without warm-up it rises from below 1 to about 2 within a few steps and "
    "goes on rising; with warm-up it stays below 1.",
)
for label, runs in seen.items():
    alike = [run["similarity"][-1] for run in runs]
    print(f"{label}: similarity after the last step {min(alike):.4f} to {max(alike):.4f}")
record(
    "attention_without_warmup",
    np.mean([run["share"][-1] for run in seen["without warm-up"]]),
)
record("attention_with_warmup", np.mean([run["share"][-1] for run in seen["with warm-up"]]))

# %% [markdown]
# Without warm-up the first few steps, each of full length, make attention outgrow the residual.
# The tokens merge, and from there hardly a gradient tells them apart.
# With warm-up the tokens grow alike as well at first, but attention stays the smaller part, and the model gets out again.
# This shows the order of events in one setting, not that it is the only way to get stuck.
#
# Do the saved results hold on your machine?
# The next cell trains one setting anew.

# %% tags=["trained"]
again = {
    arm: [
        warmup.one_run(arm, 6, 0.01, seed=run)["final_loss"]
        for run in {"quick": [0], "full": [0, 1, 2]}[profile]
    ]
    for arm in ("post-norm", "post-norm, warm-up")
}
for arm, final in again.items():
    recorded_loss = [run["final_loss"] for run in runs_of[arm, 6, 0.01][: len(final)]]
    print(f"6 layers, rate 0.01, {arm}: final loss {final}, recorded {recorded_loss}")
record("loss_without_warmup", max(again["post-norm"]))
record("loss_with_warmup", max(again["post-norm, warm-up"]))

# %% [markdown]
# ### The gradient near the output
#
# [Xiong et al. (2020)](#Sources) explain the difference by the gradient before the first step.
# **Claim.** For the last feed-forward layer of a post-norm stack it does not depend on the number $L$ of layers; in pre-norm it falls as $1/\sqrt{L}$.
# The claim would be refuted if both orders had the same exponent.

# %%
from course_utils.experiments import gradient_at_start
from course_utils.experiments.power_law import exponent

norms = {
    order: np.array(of_order).T  # [seeds, depths]
    for order, of_order in gradient_at_start.over_depths(seeds[:5]).items()
}
plotting.show(
    plotting.curves_with_spread(
        gradient_at_start.DEPTHS,
        norms,
        xlabel="layers",
        ylabel="norm of the gradient",
        xscale="log",
        yscale="log",
        markers=True,
    ),
    alt="Norm of the gradient by the last feed-forward layer's weights of untrained models, "
    "against the number of layers from 1 to 32, both axes logarithmic. Post-norm stays "
    "level or rises a little; pre-norm falls.",
)
for order, of_order in norms.items():
    slope = exponent(gradient_at_start.DEPTHS, np.exp(np.log(of_order).mean(axis=0)))
    record(f"gradient_exponent_{order.replace('-', '_')}", slope)

# %% [markdown]
# The exponents are near the 0 and −½ of the theory, over five networks each.
# It is a statement about the very first gradient: Adam divides gradients by their size, so that a large one alone does not make a large step.
# That the two go together, in the papers and here, does not show that the one causes the other.

# %% [markdown]
# ## Does gradient clipping steady training?
#
# Clipping scales a gradient down to a norm $c$ where it is larger ([Pascanu et al., 2013](#Sources), for recurrent networks).
# **Question.** Does it change what comes of training here?
# "Yes" would be refuted by runs that end the same with and without it.
#
# The measurement takes settings whose gradients have spikes: the six layers at rate 0.01 from above, with Adam; and one layer trained by SGD with momentum, at a moderate rate and at a high one.
# Three seeds each, with $c$ from 1 down to 0.01; again the results are saved with the course.

# %%
from course_utils.experiments import clipping

clipped = {
    (cell["setting"], cell["clip"]): cell["runs"]
    for cell in clipping.recorded()["measured"]
}
plotting.show(
    plotting.curve_grid(
        middle_of_each_point,
        {
            setting: {
                "norm": [run["gradient_norms"] for run in clipped[setting, None]],
            }
            for setting in clipping.SETTINGS
        },
        columns=2,
        xlabel="optimizer step",
        ylabel="gradient norm",
        yscale="log",
    ),
    alt="Largest gradient norm of every ten steps, on a logarithmic axis, three runs in each of "
    "four panels. Runs that learn have gradients of 1 to 14 while the loss falls, and a "
    "hundredth of that or less afterwards. Runs that are stuck begin near 1 and stay at about 0.1.",
)
plotting.show(
    plotting.curve_grid(
        middle_of_each_point,
        {
            setting: {
                "no clipping" if clip is None else f"c = {clip:g}": [
                    run["losses"] for run in clipped[setting, clip]
                ]
                for clip in clipping.CLIPS
            }
            for setting in clipping.SETTINGS
        },
        columns=2,
        xlabel="optimizer step",
        ylabel="loss (nats)",
        yscale="log",
    ),
    alt="Loss curves with no clipping and with bounds of 1, 0.1 and 0.01. With Adam and no "
    "warm-up all stay at guessing. With Adam and warm-up all learn, and end lower the "
    "smaller the bound. With SGD at rate 0.1, no clipping and a bound of 1 learn, smaller "
    "bounds are too slow. At rate 1 only a bound of 0.1 learns.",
)
print("final loss, lowest to highest of three runs (share of steps that were clipped)")
for (setting, clip), runs in clipped.items():
    final = [run["final_loss"] for run in runs]
    share = np.mean([run["clipped"] for run in runs])
    print(f"{setting}, c = {clip}: {min(final):.2g} to {max(final):.2g} ({share:.0%})")

# %% [markdown]
# **With Adam, clipping decides nothing here.**
# Runs that are stuck stay stuck, even where every gradient is clipped, and runs that learn learn anyway.
# Adam divides the running mean of the gradients by the root of the running mean of their squares: if all gradients are scaled by one factor, it cancels, but for a tiny constant.
# So a first step of Adam is as long with clipping as without it.
#
# It is not without effect, though: with warm-up, the smaller $c$ is, the lower the loss ends, by orders of magnitude.
# Clipping scales large gradients and leaves small ones alone, and so it does not cancel.
# Nor is the way there steadier: the runs that are clipped hardest have the most jumps in their loss.
# One reading: Adam's mean of squares remembers the large gradients of the middle of the run for about a thousand steps and shortens the later steps; clipped, they are forgotten.
# That reading is not measured here, and a loss that is small already changes no answer.
#
# **With SGD, clipping is a bound on the step**, which is at most the rate times $c$, before momentum.
# At the high rate every run without clipping is stuck, and $c = 1$ hardly ever acts: the gradients that do the harm are of ordinary size.
# With $c = 0.1$ every run learns.
# At the moderate rate the same $c$ clips every gradient and makes training too slow.
# Compare the two settings whose product of rate and $c$ is 0.01: where every step is clipped, they are the same run.
#
# What this does not show: large models meet rare, huge gradients, from an odd batch or from half precision.
# None turned up here, and in notebook 03 the published bound of the reverse task hardly ever acts.
# Does it hold on your machine? Two runs anew:

# %% tags=["trained"]
for clip in (None, 0.1):
    final = clipping.one_run("SGD, 1 layer, rate 1", clip, seed=0)["final_loss"]
    recorded_loss = clipped["SGD, 1 layer, rate 1", clip][0]["final_loss"]
    print(f"SGD, rate 1, c = {clip}: final loss {final}, recorded {recorded_loss}")
    record("sgd_loss_unclipped" if clip is None else "sgd_loss_clipped", final)

# %% [markdown]
# ## Recap
#
# - A block lets tokens exchange information by attention, then processes each by a feed-forward network.
# - Residual connections keep tokens apart, as long as attention does not drown them, and layer norm keeps their scale.
# - Sines and cosines of falling frequencies name each position; a shift by $k$ positions is a rotation.
# - The learning rate climbs for a while and then decays; the schedule counts optimizer steps.
# - A Lightning module holds what is particular to a model and leaves the loop to the Trainer.
# - Warm-up decides whether a deep post-norm model learns at a high rate; for a shallow one or a low rate it does not matter.
# - Clipping bounds the step of SGD, and changes little with Adam.

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
# ### Exercise 2.1: Layer norm, over the right axis
#
# *(easy, 10 minutes)*
# Write `my_layer_norm(x, gamma, beta, epsilon)` for tokens `x` $[\ldots, D]$; `gamma` and `beta` are $[D]$.
# Each token is brought to mean 0 and variance 1 on its own, then scaled and shifted.
# The notebook has such a function above; write yours from the formula alone.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# The formula stands in *Layer norm keeps the scale*.
# Which axis do mean and variance run over?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# `keepdim=True` keeps that axis with size 1, so that the difference and the division broadcast.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `x.var` divides by $D-1$ unless you tell it otherwise: see `correction` in its documentation.
# And `epsilon` is added before the root is taken.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_layer_norm(x, gamma, beta, epsilon):
    """Layer norm of tokens [..., D] with scale gamma [D] and shift beta [D]."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gamma * (x - mean) / (variance + epsilon).sqrt() + beta


# %% tags=["check"]
checks.layer_norm(my_layer_norm)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.2: Residual and norm, in both orders
#
# *(medium, 10 minutes)*
# Write `my_step(x, part, norm, norm_first)`, one of the two steps of a block.
# `part` is attention or the feed-forward network, and `norm` a layer norm; both are functions that map tokens $[\ldots, T, D]$ to tokens of the same shape.
# With `norm_first` False the step is post-norm, as in the original paper; with True it is pre-norm.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Both formulas stand in the notebook: post-norm at the head of *Four parts of a block*, pre-norm at the end of *Layer norm keeps the scale*.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Each formula has one sum, one `part` and one `norm`.
# Ask of each: what is inside the norm?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# In pre-norm, $x$ itself goes into the sum, untouched; only what enters `part` is normalised.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_step(x, part, norm, norm_first):
    """One step of a block, [..., T, D] to [..., T, D], as post-norm or pre-norm."""
    if norm_first:
        return x + part(norm(x))
    return norm(x + part(x))


# %% tags=["check"]
checks.residual_step(my_step)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.3: The exponent of the sinusoids
#
# *(medium, 15 minutes)*
# Write `my_sinusoids(length, width)`, the positional encoding $[T, D]$ of the positions 0 to $T-1$.
# The even dimensions hold sines, the odd ones cosines, as in the formula of *Positions*.
# The width may be odd; then there is one sine more than cosines.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# In the formula, $i$ counts pairs.
# Which $i$ do the dimensions 0 and 1 have, and which the dimensions 6 and 7?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Make all angles first: a column of positions $[T, 1]$, divided by a row of numbers $[\lceil D/2 \rceil]$.
# `torch.arange(0, width, 2)` gives $2i$.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Fill an empty tensor: `encoding[:, 0::2]` are the even dimensions, `encoding[:, 1::2]` the odd ones.
# With an odd width there are $D // 2$ of the latter, which is one fewer than there are angles.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_sinusoids(length, width):
    """Positional encoding [length, width] of the positions 0 to length - 1."""
    positions = torch.arange(length)[:, None]  # [T, 1]
    angles = positions / 10000 ** (torch.arange(0, width, 2) / width)  # [T, ceil(D / 2)]
    encoding = torch.empty(length, width)
    encoding[:, 0::2] = angles.sin()
    encoding[:, 1::2] = angles[:, : width // 2].cos()
    return encoding


# %% tags=["check"]
checks.sinusoids(my_sinusoids)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.4: A shift by k positions is a rotation
#
# *(hard, 20 minutes)*
# Write `my_rotation(offset, width)`, the matrix $M$ of shape $[D, D]$ for which $M\, PE_p = PE_{p+k}$ at every position $p$.
# Here $k$ is the offset, which may be negative, $D$ is even, and $PE_p$ is a column.
# Build it from sines and cosines; do not fit it.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Take the first pair alone.
# It holds $(\sin p, \cos p)$ and is to become $(\sin(p+k), \cos(p+k))$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# $\sin(a+b) = \sin a \cos b + \cos a \sin b$ and $\cos(a+b) = \cos a \cos b - \sin a \sin b$.
# Read the four numbers of a 2 by 2 block off these two lines.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Pair $i$ turns by the angle $k / 10000^{2i/D}$.
# The blocks stand along the diagonal, for instance by `torch.block_diag`, and everything else is 0.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_rotation(offset, width):
    """The matrix [width, width] that moves each encoding by `offset` positions."""
    angles = offset / 10000 ** (torch.arange(0, width, 2) / width)  # [D / 2]
    blocks = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles]
    return torch.block_diag(*blocks)


# %% tags=["check"]
checks.rotation(my_rotation)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.5: Warm-up, at its edges
#
# *(medium, 15 minutes)*
# Write `my_factor(step, warmup, max_iters)`, the factor $f(s)$ of *Warm-up and cosine decay* as a number.
# From step $M$ = `max_iters` on it is 0.
# With `warmup` = 0 there is no warm-up.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# The formula is a product of a climb and a decay.
# Write each on its own, and then look at the edges: steps 0, $W$, $M$ and beyond, and $W = 0$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# What is the climb once it is over?
# And is it not over at once, if it takes no steps?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Past $M$ the cosine comes up again, so that case needs a line of its own.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_factor(step, warmup, max_iters):
    """Factor on the learning rate after `step` optimizer steps, between 0 and 1."""
    if step >= max_iters:
        return 0.0
    climb = min(1.0, step / warmup) if warmup > 0 else 1.0
    return climb * 0.5 * (1 + math.cos(math.pi * step / max_iters))


# %% tags=["check"]
checks.warmup_factor(my_factor)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.6: How many numbers does a block learn?
#
# *(medium, 10 minutes)*
# Write `my_count(width, hidden)`, the number of values that an encoder block learns.
# The tokens have `width` dimensions, and the feed-forward network `hidden` in between.
# Every linear layer has a bias, and each of the two layer norms a scale and a shift.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# List the linear layers: four in attention, two in the feed-forward network.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# A linear layer from $a$ to $b$ dimensions has $a \cdot b$ weights and $b$ biases.
# The number of heads does not matter; why?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Count a block of your choice with `sum(p.numel() for p in block.parameters())` and see what is missing.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_count(width, hidden):
    """Number of parameters of an encoder block."""
    attention = 4 * (width * width + width)  # queries, keys, values and the output
    feed_forward = (width * hidden + hidden) + (hidden * width + width)
    norms = 2 * 2 * width
    return attention + feed_forward + norms


# %% tags=["check"]
checks.block_parameters(my_count)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.7: A schedule that never leaves the ground
#
# *(easy, 3 minutes)*
# The module whose schedule is stepped once an epoch named no more tokens rightly than by guessing.
# Why?
#
# - **a** Its learning rate stayed at its highest value and the loss went astray.
# - **b** Its learning rate stayed at its first value, which is 0.
# - **c** Its learning rate fell to 0 after the first few steps.
# - **d** Its optimizer took only one step, at the end of the epoch.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# How many epochs did it train for, and how many steps?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# What is $f(0)$ for $W > 0$?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# A schedule that is stepped once an epoch keeps its value during an epoch.
# Which value is that in the first one?
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
stepped_each_epoch = "b"

# %% tags=["check"]
checks.stepped_each_epoch(stepped_each_epoch)

# %% [markdown] tags=["exercise"]
# ### Exercise 2.8: When warm-up matters
#
# *(medium, 5 minutes)*
# You saw runs with and without warm-up, at several depths and learning rates.
# When does warm-up decide whether a model of this task learns?
#
# - **a** Always: without it, no Transformer learns.
# - **b** Never: with and without it, all runs end at about the same loss.
# - **c** With pre-norm models, more than with post-norm ones.
# - **d** With deep models at a high learning rate, and with post-norm ones sooner than with pre-norm ones.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Go through the panels of the first figure, from one layer to twelve and from the lowest rate to the highest.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The table has all depths and rates, and the other order of the norms as well.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Find one panel that speaks against each of the statements that you doubt.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
when_warmup_matters = "d"

# %% tags=["check"]
checks.when_warmup_matters(when_warmup_matters)

# %% [markdown]
# ### Further
#
# These are small experiments without a check.
#
# 1. *(easy, 10 minutes)* Change `block_by_hand` to pre-norm and check it against `EncoderBlock(..., norm_first=True)`.
# 2. *(easy, 10 minutes)* The paper makes the feed-forward network four times as wide as the tokens. What share of a block's parameters does it hold then? Work it out on paper, then compute it with `my_count`.
# 3. *(easy, 10 minutes)* Compare `my_rotation(offset, d_model)` with the matrix that was fitted to the encodings. Where do they differ, and why may they?
# 4. *(medium, 20 minutes)* Train the shift task to name the token *two* places back, then *five*. Which needs more steps? Draw the attention maps.
#
# <a id="Sources"></a>
# ## Sources
#
# - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, Ł. Kaiser, I. Polosukhin (2017). *Attention Is All You Need.* NeurIPS. The block, the positional encoding, a schedule with warm-up.
# - J. L. Ba, J. R. Kiros, G. E. Hinton (2016). *Layer Normalization.* arXiv:1607.06450.
# - Y. Dong, J.-B. Cordonnier, A. Loukas (2021). *Attention is not all you need: pure attention loses rank doubly exponentially with depth.* ICML.
# - R. Xiong, Y. Yang, D. He, K. Zheng, S. Zheng, C. Xing, H. Zhang, Y. Lan, L. Wang, T.-Y. Liu (2020). *On Layer Normalization in the Transformer Architecture.* ICML. Pre-norm and post-norm.
# - L. Liu, H. Jiang, P. He, W. Chen, X. Liu, J. Gao, J. Han (2019). *On the Variance of the Adaptive Learning Rate and Beyond.* arXiv:1908.03265. Why Adam's first steps vary.
# - R. Pascanu, T. Mikolov, Y. Bengio (2013). *On the difficulty of training recurrent neural networks.* ICML. Clipping the norm of the gradient.
# - D. P. Kingma, J. Ba (2015). *Adam: A Method for Stochastic Optimization.* ICLR.
# - P. Lippe. *Tutorial 6: Transformers and Multi-Head Attention.* UvA Deep Learning Tutorials. The course of topics, and the names of the classes.
