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
#
# **What you need to know.**
# Notebook 01, and how to train a network with an optimizer in PyTorch.
#
# **How long it takes.**
# Reading takes about 45 minutes.
# Running it takes about ten seconds on a laptop; a GPU would not help with models this small.
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

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn, optim

from course_utils import plotting
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
num_repeats = {"quick": 5, "full": 50}[profile]

# %% [markdown]
# ## Four parts of a block
#
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


# %%
def similarity_over_depth(residual, depth=12, length=16, width=64):
    """Mean cosine similarity between tokens before the first layer and after each."""
    x = torch.randn(1, length, width, generator=generator)
    different = ~torch.eye(length, dtype=torch.bool)
    similarities = []
    for _ in range(depth + 1):
        direction = F.normalize(x[0], dim=-1)
        similarities.append((direction @ direction.T)[different].mean().item())
        attended = MultiheadAttention(width, width, num_heads=4)(x)
        x = F.layer_norm(x + attended if residual else attended, [width])
    return similarities


def mean_over_repeats(residual):
    """The mean over networks with other random weights, and the largest deviation at the end."""
    with torch.no_grad():
        repeats = torch.tensor(
            [similarity_over_depth(residual) for _ in range(num_repeats)]
        )
    return repeats.mean(dim=0), (repeats[:, -1] - repeats[:, -1].mean()).abs().max()


with_residual, spread_with = mean_over_repeats(residual=True)
without_residual, spread_without = mean_over_repeats(residual=False)
plotting.show(
    plotting.curves(
        range(13),
        {"with residual": with_residual, "without": without_residual},
        xlabel="attention layers passed",
        ylabel="cosine similarity of two tokens",
        markers=True,
    ),
    alt="Similarity of tokens against depth. Without residual connections it reaches 1 "
    "after two layers; with them it rises layer by layer and is still below 1 after "
    "twelve.",
)
record("similarity_with_residual", with_residual[-1])
record("similarity_without_residual", without_residual[-1])
print(
    f"spread over {num_repeats} networks: "
    f"{spread_with:.2f} with residual, {spread_without:.2f} without"
)

# %% [markdown]
# Without residuals the tokens are all but equal within a few layers, and no later layer can tell them apart again.
# With residuals they grow more alike much more slowly.
# This is the state before training, for random weights: it shows where learning starts, not where it ends.

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
# The claim would be refuted by a fit that leaves errors, or by a matrix that is not orthogonal.

# %%
offset = 5
here, there = encoding[:-offset].double(), encoding[offset:].double()  # [P, D] each
fitted = torch.linalg.lstsq(
    here, there
).solution  # [D, D]; rows are positions, so it stands on the right
error = (here @ fitted - there).abs().max().item()
not_orthogonal = (
    (fitted.T @ fitted - torch.eye(d_model, dtype=torch.float64)).abs().max().item()
)
print(f"largest error of the fit below 1e-4: {error < 1e-4}")
print(f"orthogonal to within 1e-2: {not_orthogonal < 1e-2}")

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
# The fit is exact to rounding, and the matrix is orthogonal.
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
# Small first steps keep both from throwing the weights far off.
# These reasons rest on the papers; this notebook does not measure them.

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
# ## Recap
#
# - A block lets tokens exchange information by attention, then processes each by a feed-forward network.
# - Residual connections keep tokens apart, and layer norm keeps their scale.
# - Sines and cosines of falling frequencies name each position; a shift by $k$ positions is a rotation.
# - The learning rate climbs for a while and then decays; the schedule counts optimizer steps.
# - A Lightning module holds what is particular to a model and leaves the loop to the Trainer.
#
# ## Exercises
#
# 1. *(easy, 10 minutes)* Change `block_by_hand` to pre-norm and check it against `EncoderBlock(..., norm_first=True)`.
# 2. *(easy, 10 minutes)* The paper makes the feed-forward network four times as wide as the tokens. What share of the parameters does it hold then? Work it out on paper, then compute it.
# 3. *(medium, 15 minutes)* Build the rotation $M$ for an offset of $k$ from the angles $k / 10000^{2i/D}$ and compare it with the fitted one.
# 4. *(medium, 20 minutes)* Train the shift task to name the token *two* places back, then *five*. Which needs more steps? Draw the attention maps.
# 5. *(hard, 30 minutes)* Train without warm-up at learning rates of 0.01, 0.03 and 0.1, over five seeds each, and again with it. Is warm-up crucial here?
#
# <a id="Sources"></a>
# ## Sources
#
# - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, Ł. Kaiser, I. Polosukhin (2017). *Attention Is All You Need.* NeurIPS. The block, the positional encoding, a schedule with warm-up.
# - J. L. Ba, J. R. Kiros, G. E. Hinton (2016). *Layer Normalization.* arXiv:1607.06450.
# - Y. Dong, J.-B. Cordonnier, A. Loukas (2021). *Attention is not all you need: pure attention loses rank doubly exponentially with depth.* ICML.
# - R. Xiong, Y. Yang, D. He, K. Zheng, S. Zheng, C. Xing, H. Zhang, Y. Lan, L. Wang, T.-Y. Liu (2020). *On Layer Normalization in the Transformer Architecture.* ICML. Pre-norm and post-norm.
# - L. Liu, H. Jiang, P. He, W. Chen, X. Liu, J. Gao, J. Han (2019). *On the Variance of the Adaptive Learning Rate and Beyond.* arXiv:1908.03265. Why Adam's first steps vary.
# - P. Lippe. *Tutorial 6: Transformers and Multi-Head Attention.* UvA Deep Learning Tutorials. The course of topics, and the names of the classes.
