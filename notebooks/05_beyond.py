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
# # Beyond the encoder
#
# **What you will build.**
# You build the other half of the Transformer, a decoder, and it learns to add numbers, writing the sum digit by digit.
# You give it a memory, so that it need not read its own text again for each digit, and measure what that saves.
# Then you measure three things that are often only told: which positions hold on longer sequences than those of training, what cheaper kinds of attention cost and lose, and how much an attention map explains.
#
# **What you need to know.**
# Notebooks 01 to 03: attention and its masks, the encoder, positions, and how the course trains a model.
#
# **How long it takes.**
# Reading takes about 60 minutes.
# Running it takes about half a minute on a laptop.
# The full profile, which trains longer and measures over three seeds, takes a minute and a half on a laptop; a GPU would not help with models this small.
#
# **Notation.**
#
# | symbol | meaning |
# | --- | --- |
# | $B$ | number of sequences in a batch |
# | $T$, $T_s$ | length of the sequence that is written, and of the source that is read |
# | $D$ | width of a token's vector; $H$ heads share it, each of width $d = D / H$ |
# | $L$ | number of decoder blocks |
# | $M$ | memory $[T_s, D]$: what the encoder makes of the source |
# | $y_t$ | token $t$ of the target, from 0 |

# %% tags=["parameters"]
from typing import Optional

profile: str = "quick"  # one of: quick, full; full trains longer, over three seeds
max_epochs: Optional[int] = None  # of the addition model; None: as the profile says
seed: int = 42  # of the data, the initial weights and the order of the batches

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
import torch
import torch.nn.functional as F
from torch import nn

from course_utils import plotting
from course_utils.addition import RECIPES, AdditionDataset, addition_loaders, train_addition
from course_utils.attention import MultiheadAttention, regroup_per_head, scaled_dot_product
from course_utils.causal_attention import CausalAttention, causal_mask
from course_utils.cross_attention import CrossAttention
from course_utils.decoder import DecoderBlock
from course_utils.efficient_attention import linear_attention, window_attention
from course_utils.experiments import (
    addition_order,
    beyond_length,
    cache_speed,
    efficient_accuracy,
    efficient_cost,
    head_ablation,
)
from course_utils.experiments.gradient_steps import train_for
from course_utils.experiments.power_law import exponent
from course_utils.results import record
from course_utils.rotary import RotaryEncoding
from course_utils.seq2seq import SequenceToSequence, shift_right
from course_utils.training import History

torch.manual_seed(seed)
generator = torch.Generator().manual_seed(seed)  # on the CPU, with and without a GPU
num_repeats = {"quick": 1, "full": 3}[profile]  # of what is measured anew
seeds = [seed + number for number in range(num_repeats)]

# %% [markdown]
# ## No look into the future
#
# An encoder reads a sequence that is there.
# A **decoder** writes one: given the tokens $y_0, \dots, y_{t-1}$, it says what $y_t$ should be, and the token it chooses becomes part of what it reads next.
# A model that works like this is called *autoregressive*.
#
# So the output at a position must not depend on any later token, which is not there yet when it counts.
# In a Transformer only attention moves information between positions, so only attention needs the rule: query $i$ may attend to the keys $0$ to $i$.
# That is the **causal mask** of notebook 01, a lower triangle.
#
# **Claim.** Under a causal mask, a change of later tokens changes no earlier output, not even in the last bit.
# It would be refuted by a single earlier number that differs.

# %%
causal = CausalAttention(input_dim=16, embed_dim=16, num_heads=4)
plain = MultiheadAttention(input_dim=16, embed_dim=16, num_heads=4)
plain.load_state_dict(causal.state_dict())  # the same weights, without the mask

x = torch.randn(1, 8, 16, generator=generator)  # [B, T, D]
changed = x.clone()
changed[:, 5:] += torch.randn(1, 3, 16, generator=generator)  # other tokens from place 5 on


def earlier_outputs_changed(layer):
    """How many of the first five outputs differ when the last three tokens are changed."""
    with torch.no_grad():
        same = (layer(x) == layer(changed)).all(dim=-1)[0]  # [T]
    return (~same[:5]).sum()


record("earlier_outputs_changed", earlier_outputs_changed(causal))
record("earlier_outputs_changed_without_mask", earlier_outputs_changed(plain))

# The library's layer is the layer of notebook 01 with this mask.
torch.testing.assert_close(causal(x), plain(x, causal_mask(8, 8)))

# One pass over all tokens gives what a pass over each beginning would give.
for t in range(8):
    torch.testing.assert_close(causal(x)[:, t], causal(x[:, : t + 1])[:, t])

# %% [markdown]
# With the mask no earlier output changes; without it all five do.
#
# The last lines show why this matters for training.
# One pass over a sequence of $T$ tokens gives the outputs of $T$ beginnings at once, so a decoder learns from all its positions in a single step.
# A recurrent network has to go through them one by one.

# %% [markdown]
# ## Attention to another sequence
#
# To add two numbers, the decoder has to look at them.
# In **cross-attention** the queries come from the decoder's tokens, and the keys and values from the encoder's output $M$, the *memory*:
#
# $$\text{Cross}(X, M) = \text{Attention}(X W^Q,\; M W^K,\; M W^V)\, W^O$$
#
# Here $X$ is $[T, D]$ and $M$ is $[T_s, D]$; all four matrices are $[D, D]$, and a map of weights is $[T, T_s]$, which need not be square.
# There is no causal mask: the whole source is there from the beginning.
#
# A decoder block then has three parts in place of two, each with a residual connection and a layer norm ([Vaswani et al., 2017](#Sources), section 3.1): causal self-attention, cross-attention, and the feed-forward network.


# %%
def cross_attention_by_hand(x, memory, layer):
    """Attention of x [B, T, D] to a memory [B, Ts, D], one head at a time."""
    q, k, v = layer.q_proj(x), layer.k_proj(memory), layer.v_proj(memory)
    heads = zip(*(each.chunk(layer.num_heads, dim=-1) for each in (q, k, v)), strict=True)
    found = [scaled_dot_product(*head)[0] for head in heads]  # H times [B, T, D / H]
    return layer.o_proj(torch.cat(found, dim=-1))


def decoder_block_by_hand(x, memory, block):
    """Post-norm decoder block, with the weights of a DecoderBlock."""
    x = block.norm1(x + block.self_attn(x))
    x = block.norm2(x + cross_attention_by_hand(x, memory, block.cross_attn))
    return block.norm3(x + block.linear_net(x))


def copy_attention(theirs, ours):
    """Give our cross-attention the weights of an nn.MultiheadAttention."""
    for name in ("weight", "bias"):
        packed = getattr(theirs, f"in_proj_{name}").detach()
        parts = (ours.q_proj, ours.k_proj, ours.v_proj)
        for part, rows in zip(parts, packed.chunk(3), strict=True):
            getattr(part, name).data.copy_(rows)
    ours.o_proj.load_state_dict(theirs.out_proj.state_dict())


def copy_from_pytorch(theirs, ours):
    """Give a DecoderBlock the weights of an nn.TransformerDecoderLayer."""
    for name in ("weight", "bias"):
        packed = getattr(theirs.self_attn, f"in_proj_{name}").detach()
        regrouped = regroup_per_head(packed, ours.self_attn.num_heads)
        getattr(ours.self_attn.qkv_proj, name).data.copy_(regrouped)
    ours.self_attn.o_proj.load_state_dict(theirs.self_attn.out_proj.state_dict())
    copy_attention(theirs.multihead_attn, ours.cross_attn)
    ours.linear_net[0].load_state_dict(theirs.linear1.state_dict())
    ours.linear_net[3].load_state_dict(theirs.linear2.state_dict())
    for norm in ("norm1", "norm2", "norm3"):
        getattr(ours, norm).load_state_dict(getattr(theirs, norm).state_dict())


x = torch.randn(2, 5, 64, generator=generator)  # [B, T, D]
memory = torch.randn(2, 7, 64, generator=generator)  # [B, Ts, D]
cross = CrossAttention(input_dim=64, memory_dim=64, embed_dim=64, num_heads=4)
with torch.no_grad():
    torch.testing.assert_close(cross_attention_by_hand(x, memory, cross), cross(x, memory))

for norm_first in (False, True):
    theirs = nn.TransformerDecoderLayer(
        64, 4, 128, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    ours = DecoderBlock(64, 4, 128, norm_first=norm_first)
    copy_from_pytorch(theirs, ours)
    with torch.no_grad():
        future = ~causal_mask(5, 5)  # PyTorch's True means: may not attend
        torch.testing.assert_close(ours(x, memory), theirs(x, memory, tgt_mask=future))
        if not norm_first:
            torch.testing.assert_close(
                decoder_block_by_hand(x, memory, ours), ours(x, memory)
            )
    print(f"norm_first={norm_first}: equal to PyTorch's layer")

# %% [markdown]
# ## A task to write: addition
#
# The source holds the digits of two numbers of three digits each.
# The target is their sum, four digits with leading zeros, written from the last digit to the first, as you do it on paper.
# Each digit then follows from two digits and a carry.
#
# ### Teacher forcing
#
# The decoder is given the target shifted right by one place, behind a **start token** that says "nothing is written yet".
# At position $t$ it has then read $y_0, \dots, y_{t-1}$, and its output is compared with $y_t$.
# It reads the *right* digits even where it would have written wrong ones, which is called **teacher forcing**.
#
# Two mistakes are easy to make here.
# Without the shift the model reads the very token it is to predict; without the causal mask it reads it one place further on.
# Either way the loss says that all is well.
# After the example, the next cell makes the first mistake on purpose, for 100 steps.

# %%
example = AdditionDataset(torch.tensor([358_067]))  # 358 and 067
source, target = (each[None] for each in example[0])  # [1, 6] and [1, 4]
print("source            ", source[0].tolist())
print("target            ", target[0].tolist())
print("the decoder reads ", shift_right(target, start_token=10)[0].tolist())

# %% tags=["trained"]
recipe = RECIPES[profile]
unshifted = SequenceToSequence(max_iters=1, **recipe.model)


def loss_without_shift():
    """The loss of a batch whose decoder is given the target as it stands."""
    batch = AdditionDataset(torch.randint(1_000_000, (128,), generator=generator))
    predicted = unshifted.decode(batch.target, unshifted.encode(batch.source))
    return F.cross_entropy(predicted.flatten(0, 1), batch.target.flatten())


train_for(100, unshifted, loss_without_shift, lr=recipe.model["lr"])
test_set = addition_loaders(profile, seed=seed).test.dataset
source, target = test_set.source, test_set.target  # [N, 6] and [N, 4]
written, _ = unshifted.generate(source, length=4)
with torch.no_grad():
    record("loss_without_shift", loss_without_shift())
record("written_right_without_shift", (written == target).all(dim=1).float().mean())

# %% [markdown]
# The loss is close to 0, and next to no sum is written right: the model has learned to repeat what it is given.
#
# Now with the shift.
# The loss is the cross-entropy of the next token, averaged over all positions of the target.
# The accuracy below is stricter: a sum counts as right if the model **writes** all its digits right, reading its own.
# The pairs of numbers that are tested occur neither in training nor in validation.

# %% tags=["nbval-ignore-output"]
history = History()
model, accuracy = train_addition(
    profile=profile, max_epochs=max_epochs, seed=seed, callbacks=[history]
)
print(dict(recipe.model), "batches of", recipe.batch_size)
plotting.show(
    plotting.learning_curves(
        history.train_loss,
        history.learning_rate,
        history.val_step,
        history.val_acc,
        loss_unit="nats a digit",
    ),
    alt="Three panels against the optimizer step. The loss of the addition model stays on a "
    "plateau and then falls. The learning rate climbs and decays. The share of sums "
    "that are written without a mistake rises from near 0 to near 1.",
)

# %% tags=["trained"]
record("addition_test_acc", accuracy["test_acc"])
with torch.no_grad():
    forced = model(source, target).argmax(dim=-1)  # [N, 4]: reading the right digits
written, logits = model.generate(source, length=4)  # reading its own
for row in range(3):
    a, b = source[row, :3].tolist(), source[row, 3:].tolist()
    print(a, "+", b, "->", written[row].tolist(), "right:", target[row].tolist())
right_forced = (forced == target).all(dim=1)
right_written = (written == target).all(dim=1)
print("right under teacher forcing, and when writing, are the same sums:")
print(torch.equal(right_forced, right_written))

# %% [markdown]
# A sum is right in writing exactly if it is right under teacher forcing.
# That is no coincidence: as long as the model has made no mistake, it has read the same digits in both.
# The two differ only **after** a mistake, and a model that was always taught with right digits has never seen one.
# What happens then?
#
# **Question.** If the first digit it reads is wrong, does it still get the second right?
# If it works out the carry from the source alone, a wrong digit costs nothing; if it reads the carry off the written digit, it costs a lot.

# %% tags=["trained"]
wrong_first = target.clone()
wrong_first[:, 0] = (target[:, 0] + 5) % 10  # as if it had written another last digit
with torch.no_grad():
    second = model(source, wrong_first).argmax(dim=-1)[:, 1]  # [N]
record("second_digit_acc", (forced[:, 1] == target[:, 1]).float().mean())
record("second_digit_acc_after_mistake", (second == target[:, 1]).float().mean())

# %% [markdown]
# The two numbers say how far this model relies on what it has written: the second digit needs a carry from the first place only.
# The loss tells nothing of it, since under teacher forcing the digit before is never wrong.
# What this does not show: how much it matters in the end. A model that hardly ever makes a first mistake has little use for help after it.

# %% tags=["nbval-ignore-output"]
source, target = (each[None] for each in example[0])
_, on_source = model.get_attention_maps(source, target)  # for each block [1, H, T, Ts]
plotting.show(
    plotting.attention_maps(
        [block[0] for block in on_source],
        queries=[f"writes {digit}" for digit in target[0].tolist()],
        keys=[f"{name}{power}" for name in "ab" for power in (100, 10, 1)],
    ),
    alt="Cross-attention maps of the heads of the addition model for one sum: the four "
    "digits to be written against the six digits of the two numbers. When it writes the "
    "ones, weight lies on the ones of both numbers; for the tens on the tens; and so on.",
)

# %% tags=["nbval-ignore-output"]
_, (on_source,) = model.get_attention_maps(test_set.source, test_set.target)
weights = (
    on_source.mean(dim=(0, 1)).unflatten(1, (2, 3)).sum(dim=1)
)  # [T, 3]: by place value
own_place = [weights[t, 2 - t].item() for t in range(3)]  # ones, tens, hundreds
place_below = [weights[t, 3 - t].item() for t in (1, 2, 3)]  # where a carry comes from
print("mean weight on the two digits of the same place: ", [f"{w:.2f}" for w in own_place])
print(
    "mean weight on the two digits of the place below:", [f"{w:.2f}" for w in place_below]
)
# %% tags=["trained"]
record("weight_on_own_place", sum(own_place) / 3)
record("weight_on_place_below", sum(place_below) / 3)

# %% [markdown]
# Each row is a digit to be written, each column a digit of the source, by its place value.
# Even attention would give a third of the weight to the two digits of any place.
# Over all heads and all sums of the test set, more than that lies on the digits that are added, and part of the rest on the place below, where a carry comes from.
# The last section of this notebook asks how much one may read from such maps.
#
# ### Does the order of writing matter?
#
# **Claim.** A sum is easier to write from its last digit to its first than as it is read.
# As it is read, the first digit already depends on all carries, and the decoder cannot take it back.
# [Lee et al. (2023)](#Sources) find this for models without an encoder.
# It would be refuted by models that learn as fast the other way.
#
# The committed measurement trains both ways with three seeds each, by the quick recipe.
# Your own run above is one more of the first kind.

# %% tags=["trained"]
order = addition_order.recorded()["measured"]
plotting.show(
    plotting.curves_with_spread(
        order["last digit first"][0]["val_step"],
        {name: [run["val_acc"] for run in runs] for name, runs in order.items()},
        xlabel="optimizer step",
        ylabel="sums written without a mistake",
        markers=True,
    ),
    alt="Share of right sums against the optimizer step, for both orders of writing: the "
    "median of three seeds on a band from the smallest to the largest.",
)
middle = 2  # the third validation of five
for name, runs in order.items():
    print(
        f"{name}, step {runs[0]['val_step'][middle]}:", [r["val_acc"][middle] for r in runs]
    )
    print(f"{name}, test at the end:", [run["test_acc"] for run in runs])
record("last_first_worst", min(run["val_acc"][middle] for run in order["last digit first"]))
record("as_read_best", max(run["val_acc"][middle] for run in order["as it is read"]))
record("as_read_test_acc", min(run["test_acc"] for run in order["as it is read"]))

# %% [markdown]
# The claim holds in its direction: half-way through, the worst run of the one kind is ahead of the best run of the other.
# The difference is small, though, and at the end both kinds are nearly always right.
# The usual telling, that a model hardly learns to add as it is read, comes from decoders that have no encoder.
# Here the encoder has read both numbers to the end before the first digit is written, so it can work out the carries beforehand.
# What this does not show: longer numbers, with longer chains of carries.

# %% [markdown]
# ## The key-value cache
#
# To write token $t$, the decoder so far reads all $t$ tokens before it, and works out keys and values that it has worked out before: causal attention never changes the past.
# So keep them.
# A **key-value cache** holds the keys and values of each layer; a new token makes its own query, key and value, adds the last two to the cache, and attends to all that is there.
# Queries are not kept, since each is used once.
# The keys and values of the memory $M$ are worked out once and stay.
#
# Per token, without a cache: $O(T \cdot D^2 + T^2 \cdot D)$. With it: $O(D^2 + T \cdot D)$.
#
# First, the result must be the same.

# %% tags=["trained"]
without_cache, logits_without = model.generate(test_set.source, length=4, use_cache=False)
torch.testing.assert_close(logits, logits_without, rtol=1e-4, atol=1e-4)
print("same digits:", torch.equal(written, without_cache))

# %% [markdown]
# **Claim.** With a cache the time of a token grows more slowly with the length of the text than without.
# It would be refuted by exponents that are equal.
#
# The measurement takes an untrained decoder of width 64 with two blocks, since time does not depend on what a model has learned.
# It times one more token after $T$ tokens, as processor time of one thread, the shortest of several repeats.

# %% tags=["nbval-ignore-output"]
speed = cache_speed.cache_speed()
lengths = cache_speed.LENGTHS
long = 3  # exponents are fitted from this length on; below it, overhead hides the growth
exponents = {
    name: exponent(lengths[long:], speed[name][long:]) for name in ("without", "with")
}
time_of_token = {f"{name} cache": speed[name] for name in ("without", "with")}
plotting.show(
    plotting.growth(
        lengths,
        {"time of the next token (s)": time_of_token},
        xlabel="tokens written so far, T",
        symbol="T",
        exponents={
            "time of the next token (s)": {
                f"{name} cache": value for name, value in exponents.items()
            }
        },
        fitted_from=lengths[long],
    ),
    alt="Time of the next token against the number of tokens written so far, on logarithmic "
    "axes. Without the cache it grows faster than in proportion to the length; with the "
    "cache it hardly grows.",
)
record("token_exponent_without_cache", exponents["without"])
record("token_exponent_with_cache", exponents["with"])
record("cache_speed_ratio", speed["without"][-1] / speed["with"][-1])
print(f"at T = {lengths[-1]}: {speed['without'][-1] / speed['with'][-1]:.0f} times as fast")

# %% [markdown]
# With the cache the time is nearly flat at these lengths: one query against a few thousand keys costs less than the overhead of calling the layers.
# For much longer texts it too would grow in proportion to $T$.
#
# The price is memory.
# The cache holds two vectors of width $D$ for each token and block: $2 \cdot L \cdot T \cdot D$ numbers.
# The next cell compares that with what was kept, and works it out for a model of a size that is in use.

# %%
kept = speed["bytes"][-1]
by_formula = 2 * 2 * lengths[-1] * 64 * 4  # keys and values, L, T, D, bytes of a float32
record("cache_bytes_over_formula", kept / by_formula)
large = 2 * 32 * 8192 * 4096 * 2  # L = 32, T = 8192, D = 4096, two bytes a number
print(f"here, for {lengths[-1]} tokens: {kept / 2**20:.1f} MiB")
print(f"32 blocks of width 4096, 8192 tokens, half precision: {large / 2**30:.0f} GiB")
print(f"the same with one key and value for all 32 heads: {large / 32 / 2**20:.0f} MiB")

# %% [markdown]
# That is for a single text; a server that writes for many at once holds one cache for each.
# [Shazeer (2019)](#Sources) lets all heads share one key and one value, which divides it by $H$; what that costs in accuracy is not measured here.

# %% [markdown]
# ## Positions on longer sequences
#
# You know two ways to tell a Transformer where a token stands: sinusoids that are added (notebook 02), and vectors that are learned, one for each position, as the addition model has them.
# A third way turns instead of adding.
#
# **Rotary positions** ([Su et al., 2021](#Sources)) split each query and key of width $d$ into pairs of numbers.
# The pair $i$ of the token at position $p$ is turned by the angle $p \cdot \theta_i$ with $\theta_i = 10000^{-2i/d}$, the angles of notebook 02.
# Read a pair as a complex number $z$, and the turn is a product: $z \mapsto z\, e^{\mathrm{i} p \theta_i}$.
# The score of a query at $p$ with a key at $r$ then holds the products $z_q\, \overline{z_k}\, e^{\mathrm{i}(p - r)\theta_i}$.
# Only the difference $p - r$ is left.
# Values are not turned, and nothing is added to the tokens.


# %%
def turn_by_hand(x):
    """Rotary positions for x [T, d], with complex numbers."""
    length, width = x.shape
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))  # [T, d / 2]
    theta = 10000 ** (-torch.arange(0, width, 2) / width)  # [d / 2]
    angle = torch.arange(length)[:, None] * theta  # [T, d / 2]
    turned = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2)


x = torch.randn(40, 16, generator=generator)
rotary = RotaryEncoding(16)
torch.testing.assert_close(turn_by_hand(x), rotary(x), rtol=1e-4, atol=1e-4)

# The same query and the same key at all places: do their scores depend on the distance only?
query, key = torch.randn(2, 1, 16, generator=generator)
scores = rotary(query.expand(40, -1)) @ rotary(key.expand(40, -1)).T  # [40, 40]
uneven = max(scores.diagonal(k).std(correction=0).item() for k in range(-38, 39))
print("scores along each diagonal equal to rounding:", uneven < 1e-4)
lengths_kept = rotary(x).norm(dim=-1) / x.norm(dim=-1)
print("lengths of the vectors unchanged:", torch.allclose(lengths_kept, torch.ones(40)))

# %% [markdown]
# A score depends on the distance alone, by construction and not by training.
# Does the model then work on sequences that are longer than any it has seen?
#
# **Claim.** Beyond the length of training, rotary positions carry further than sinusoidal ones, and learned ones do not carry at all.
#
# The task needs nothing but distance: name the digit before each digit.
# A Transformer with one layer and two heads is trained on sequences of 2 to 16 digits and tested on the last four digits of sequences of up to 64.
# A learned vector of a position beyond 16 exists, but no gradient has ever reached it: it is as random as on the first day.
# The claim would be refuted by an accuracy beyond 16 that is no better with rotary positions than with sinusoidal ones, or better than guessing with learned ones.
# The committed result holds three seeds of each kind.

# %% tags=["trained"]
beyond = beyond_length.recorded()["measured"]
test_lengths = beyond["lengths"]
plotting.show(
    plotting.curves_with_spread(
        test_lengths,
        beyond["accuracy"],
        xlabel="length of the tested sequence (trained on 2 to 16)",
        ylabel="accuracy on the last four digits",
        markers=True,
        reference=(1 / beyond_length.DIGITS, "guessing"),
        legend_beside=True,
    ),
    alt="Accuracy against the length of the tested sequence, for learned, sinusoidal and "
    "rotary positions, for rotary ones with keys no farther than in training, and for "
    "none; median and range of three seeds. Up to 16 all but the last are perfect. "
    "Beyond, the learned ones fall to guessing at once, the sinusoidal ones more slowly, "
    "the rotary ones more slowly still; with near keys only they stay high.",
)
twice = test_lengths.index(32)
for kind, runs in beyond["accuracy"].items():
    print(f"{kind:<24} at 32 digits:", [f"{run[twice]:.2f}" for run in runs])
measured_now = [beyond_length.accuracy_by_length("rotary", each)[twice] for each in seeds]
record("rotary_acc_at_32", sum(measured_now) / len(seeds))
for kind in ("learned", "sinusoidal", "rotary"):
    runs = beyond["accuracy"][kind]
    record(f"{kind}_acc_at_32_committed", sum(run[twice] for run in runs) / len(runs))
near = beyond["accuracy"][beyond_length.NEAR]
record("near_keys_acc_at_64_committed", sum(run[-1] for run in near) / len(near))

# %% [markdown]
# Learned positions fall to guessing, or nearly, with the first places that were not trained: their vectors say nothing.
#
# Sinusoidal positions fade.
# Notebook 02 showed that a step of $k$ places is the same rotation everywhere, so a model *could* have learned "one place back" for all positions.
# But the encoding is added to the token and goes through learned projections, which were fitted to the places they saw; nothing makes the scores depend on the distance alone.
#
# Rotary positions carry further, and yet they do not stay perfect.
# The score for "one place back" is right everywhere, so what goes wrong?
# In a longer sequence a query also meets keys at distances that training never showed, and some of those happen to get high scores.
# The fourth curve tests this explanation: it takes models with rotary positions, trained in the same way, and hides at the test all keys that are more than 15 places away.
# They then make hardly a mistake at four times the length, as the last number records.
#
# So the claim holds, with a limit that is often left out: rotary positions make scores a function of distance, and a model knows that function only for distances it was trained on.
# Other schemes make distant scores small by construction ([Press et al., 2022](#Sources)).
# What this does not show: tasks in which the answer itself lies farther away than in training. There, hiding distant keys cannot help.

# %% [markdown]
# ## Attention that is cheaper
#
# Full attention compares each query with each key, $T^2$ scores.
# Two ideas avoid that.
#
# **A window.** Each query sees the keys at most $w$ places away ([Beltagy et al., 2020](#Sources)): $T \cdot (2w + 1)$ scores.
# What stands farther away is out of reach of one layer, and within reach of several.
#
# **Linear attention** ([Katharopoulos et al., 2020](#Sources)) changes the weights.
# In place of $e^{q \cdot k / \sqrt{d}}$ it takes $\phi(q) \cdot \phi(k)$, with a function $\phi$ that makes all numbers positive, here $\phi(x) = \text{elu}(x) + 1$.
# The sum over the keys can then be taken before the query is known:
#
# $$\frac{\sum_j \left(\phi(q)\cdot\phi(k_j)\right) v_j}{\sum_j \phi(q)\cdot\phi(k_j)} = \frac{\phi(q)^\top \left(\sum_j \phi(k_j)\, v_j^\top\right)}{\phi(q)^\top \sum_j \phi(k_j)}$$
#
# On the right, the bracket is one matrix $[d, d]$ for all queries.
# Under a causal mask it is a sum up to the query's place: it grows token by token, like the state of a recurrent network, and it does not become larger with the text, as the key-value cache does.


# %%
def linear_attention_by_hand(q, k, v):
    """The left side of the formula, with all T x T weights."""
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-2, -1)  # [T, T]
    return weights / weights.sum(dim=-1, keepdim=True) @ v


q, k, v = torch.randn(3, 20, 8, generator=generator)
torch.testing.assert_close(linear_attention_by_hand(q, k, v), linear_attention(q, k, v))

place = torch.arange(20)
band = (place[:, None] - place).abs() <= 3  # [T, T]: at most three places away
torch.testing.assert_close(
    scaled_dot_product(q, k, v, band)[0], window_attention(q, k, v, radius=3)
)
print("both equal the explicit formula")

# %% [markdown]
# **Claim.** Time and memory grow with $T^2$ for full attention, and with $T$ for the other two.
# It would be refuted by other exponents.
# Memory is counted exactly, as the most that PyTorch holds at one time; time is processor time of one thread, for a single head of width 32 and a window of 16 places to either side.
# Fused full attention is measured as well: the same values, from a kernel that never keeps the matrix.

# %% tags=["nbval-ignore-output"]
lengths = efficient_cost.LENGTHS
cost = efficient_cost.efficient_cost()
panels, fitted = {}, {}
for what, label in [("seconds", "time (s)"), ("bytes", "memory at the peak (bytes)")]:
    panels[label] = {name: each[what] for name, each in cost.items()}
    fitted[label] = {
        name: exponent(lengths[long:], curve[long:])
        for name, curve in panels[label].items()
    }
    for name in ("full", "linear", "window"):
        record(f"{name}_{what}_exponent", fitted[label][name])
plotting.show(
    plotting.growth(
        lengths,
        panels,
        xlabel="sequence length T",
        symbol="T",
        exponents=fitted,
        fitted_from=lengths[long],
    ),
    alt="Time and memory against length on logarithmic axes, for full attention, fused full "
    "attention, linear attention and a window. The time of both full ones rises about "
    "twice as steeply as that of the others; in memory only the explicit full one does.",
)

# %% [markdown]
# In time, both full ones are quadratic; the exponent of the explicit one comes out higher still where its matrix no longer fits into the fast memory of the processor.
# In memory only the explicit one is: the fused kernel computes the same numbers piece by piece.
# So memory alone is no reason to give up full attention; time is.
# For short sequences full attention is as fast or faster, since a matrix product is what a processor does best; the curves show where that changes.
#
# **Question.** What do the cheaper ones lose?
# The same model, with one layer and one head, learns two tasks with each kind of attention in the same number of steps.
# To reverse a sequence of 16 digits, it must reach up to 15 places; to name the digit before, one.
# The window has two places to either side.

# %% tags=["trained"]
loss_of_cheap = efficient_accuracy.recorded()["measured"]
three_seeds = {
    f"{task}:\n{kind}": runs
    for task, kinds in loss_of_cheap.items()
    for kind, runs in kinds.items()
}
plotting.show(
    plotting.bars(
        {name: sum(runs) / len(runs) for name, runs in three_seeds.items()},
        errors={name: (max(runs) - min(runs)) / 2 for name, runs in three_seeds.items()},
        ylabel="share of right digits",
    ),
    alt="Accuracy of full, linear and windowed attention on the two tasks: the mean of three "
    "seeds, with half of their range to either side. Full attention is always right. "
    "The window is far behind in reversing and a little behind in naming the digit "
    "before. Linear attention is between them in reversing.",
)
for task in efficient_accuracy.TASKS:
    ceiling = efficient_accuracy.window_ceiling(task)
    print(f"{task}: the most that one layer with this window can reach is {ceiling:.3f}")
now = [efficient_accuracy.accuracy_of("linear", "reverse", each) for each in seeds]
record("linear_reverse_acc", sum(now) / len(now))
for kind in efficient_accuracy.KINDS:
    runs = loss_of_cheap["reverse"][kind]
    record(f"{kind}_reverse_acc_committed", sum(runs) / len(runs))

# %% [markdown]
# Full attention solves both tasks.
#
# The window reaches just what it can: where the answer lies inside it, it is right, and elsewhere it guesses.
# In the second task only the first digit is out of reach, whose answer is the last one.
#
# Linear attention loses on both, and more on the one that needs to look far.
# Nothing is out of its reach, but it cannot look as sharply: without the exponential, a weight is a product of $d$ positive numbers each, and for one key to stand out among sixteen the vectors must be nearly orthogonal.
# What this does not show: that it could not learn more in more steps, with more heads, or with another $\phi$; and it says nothing about language, where much of what matters is near.

# %% [markdown]
# ## What an attention map explains
#
# A map shows where a head looks.
# It is tempting to read it as what the model *uses*.
# [Jain & Wallace (2019)](#Sources) argue against that, and [Wiegreffe & Pinter (2019)](#Sources) answer that it depends on what one calls an explanation.
# Here you can put it to a test: take a head away, and see what it costs.
#
# **Question.** Does a head that attends to where the answer stands matter more than one that does not?
#
# A model with two layers of four heads learns to reverse sequences, so the answer of query $p$ stands at the mirrored position $T - 1 - p$.
# For each head the measurement takes its mean weight on the mirrored position, and two losses of accuracy:
#
# - **switched off**: all its weights are 0, and it gives nothing;
# - **even**: it gives each position the same weight $1/T$. This takes away where the head looks, and leaves it the mean of its values.
#
# If the map told importance, heads with more weight would cost more, and the rank correlation of weight and loss over the heads would be near 1.
# The committed result holds five models from five seeds; one more is trained here.

# %% tags=["nbval-ignore-output"]
results = [
    head_ablation.attention_and_damage(head_ablation.trained(each), each) for each in seeds
]
one = results[0]
print("accuracy lost, of the model trained here:")
print(f"{'layer':>6} {'head':>5} {'weight':>8} {'off':>8} {'even':>8}")
rows = zip(one["weight"], one["off"], one["even"], strict=True)
for number, (weight, off, even) in enumerate(rows):
    layer, head = divmod(number, head_ablation.HEADS)
    print(f"{layer + 1:>6} {head + 1:>5} {weight:>8.2f} {off:>8.3f} {even:>8.3f}")
for layer in range(head_ablation.LAYERS):
    off, even = one["layer_off"][layer], one["layer_even"][layer]
    print(f"{layer + 1:>6} {'all':>5} {'':>8} {off:>8.3f} {even:>8.3f}")

# %% tags=["trained"]
record("ablated_model_acc", min(each["accuracy"] for each in results))
record("first_layer_even", max(each["layer_even"][0] for each in results))
record("last_layer_even", min(each["layer_even"][1] for each in results))

# %% tags=["trained"]
committed = head_ablation.recorded()["measured"]
every_head = {
    name: torch.tensor(
        [run[name] for run in committed]
    ).flatten()  # [seeds · layers · heads]
    for name in ("weight", "off", "even")
}
plotting.show(
    plotting.scatter(
        {
            "switched off": (every_head["weight"], every_head["off"]),
            "attending evenly": (every_head["weight"], every_head["even"]),
        },
        xlabel="mean weight of the head on the mirrored position",
        ylabel="accuracy lost",
    ),
    alt="Each head of five models as two points: its weight on the mirrored position against "
    "the accuracy lost when it is switched off, and when it attends evenly. Heads with "
    "weights near even cost nothing when they attend evenly, but some cost much when "
    "switched off. Heads with weights near 1 mostly cost little either way.",
)
for edit in ("off", "even"):
    correlations = [run[f"rank_correlation_{edit}"] for run in committed]
    print(
        f"rank correlation of weight and loss, {edit}:", [f"{c:.2f}" for c in correlations]
    )
    record(f"rank_correlation_{edit}_committed", sum(correlations) / len(correlations))
attending = every_head["weight"] > 0.5
print(f"heads with more than half of their weight on the answer: {attending.sum()}")
free = every_head["even"][attending] < 0.005
print(f"of these, heads that cost less than 0.5 points when even: {free.sum()}")
record("attending_heads_that_cost_nothing", free.float().mean())
record("largest_loss_of_an_attending_head", every_head["even"][attending].max())
record(
    "largest_loss_off_of_a_head_that_attends_elsewhere", every_head["off"][~attending].max()
)

# %% [markdown]
# Read the table and the figure from both sides.
#
# **Heads that attend and do not matter.**
# In the second layer nearly all heads look at the answer with nearly all their weight, and about half of them can be made to look anywhere at no cost.
# All four together are needed: without their maps the model is nearly back to guessing.
# They do the same work, and share it unequally: most are spare, while in some models one of them carries a large part, and its map looks no different.
# The maps are right about *what* the layer does, and say little about what a single head is worth.
# [Michel et al. (2019)](#Sources) find the same in models for translation: most heads can be removed one at a time.
#
# **Heads that do not attend and seem to matter.**
# In the first layer no head looks at the answer, and yet switching some of them off costs a lot.
# But when the same heads attend evenly, next to nothing is lost, even with the whole layer at once.
# So it is not where they look that matters.
# A head that attends evenly gives every query the same vector, and that is enough; presumably the rest of the model has come to expect such an offset, and misses it when it is zero.
# Had you only switched heads off, you would have called them important.
#
# Thus the answer depends on the question.
# With heads switched off, weight hardly ranks them.
# With even attention it ranks them better, mostly since it tells the layer that looks from the layer that does not.
# What this does not show: models in which each head has work of its own, and longer chains of layers, where a weight on a position is a weight on a mixture of tokens.

# %% [markdown]
# ## Recap
#
# - A causal mask keeps later tokens out of earlier outputs, to the bit, so a decoder learns from all positions in one pass.
# - Cross-attention takes its queries from what is written and its keys and values from what is read.
# - Under teacher forcing the decoder reads the right target, shifted right behind a start token; when it writes, it reads its own.
# - A key-value cache changes no result, makes the next token cheaper the longer the text, and costs memory in proportion to it.
# - Learned positions end where training ends. Rotary scores depend on distances alone, and carry as far as the distances were trained.
# - Linear attention and a window cost time and memory in proportion to the length, and each gives something up for it.
# - Where a head looks is not what it is worth: other heads may do the same work.

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
# ### Exercise 5.1: Teacher forcing: what the decoder is given
#
# *(easy, 5 minutes)*
# Write `my_decoder_input(target, start)`, what a decoder is given while it is taught.
# `target` holds tokens $[B, T]$, and `start` is the number of the start token; the result is $[B, T]$.
# When place $t$ is to be predicted, the decoder has been given the tokens before $t$, and not token $t$.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Write down what is known when the first token is to be predicted, and what when the second is.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Each row moves by one place: something is put in on one side and something falls out on the other.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `torch.full_like(target[:, :1], start)` is a column of start tokens, and `torch.cat` puts two tensors side by side.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_decoder_input(target, start):
    """The start token, then the target [B, T] without its last token: [B, T]."""
    first = torch.full_like(target[:, :1], start)
    return torch.cat([first, target[:, :-1]], dim=1)


# %% tags=["check"]
checks.shifted_target(my_decoder_input)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.2: Choosing the next token
#
# *(medium, 15 minutes)*
# `generate` always writes the most likely token, which suits a sum; for a text, one often draws a token from the best few.
# Write `my_top_k(logits, k, temperature)`: the probabilities $[\ldots, C]$ from which it draws.
# The logits $[\ldots, C]$ are divided by the temperature, only the `k` best tokens keep a probability, and these sum to 1.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# It is masked attention once more: some places get a probability of exactly 0, and the others share 1.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# `logits.topk(k, dim=-1).values` are the `k` largest, in falling order.
# The last of them is the threshold.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Set what lies below the threshold to $-\infty$ and take the softmax last.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_top_k(logits, k, temperature):
    """Probabilities [..., C] of the k best tokens; 0 for the others."""
    threshold = logits.topk(k, dim=-1).values[..., -1:]
    logits = (logits / temperature).masked_fill(logits < threshold, float("-inf"))
    return logits.softmax(dim=-1)


# %% tags=["check"]
checks.top_k_probabilities(my_top_k)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.3: One step with a key-value cache
#
# *(hard, 20 minutes)*
# Write `my_cached_step(q, k, v, keys, values)`, which attends for one new token with a cache.
# `q`, `k` and `v` are those of the new token, $[B, H, 1, d]$; `keys` and `values` are those of the tokens before it, $[B, H, T, d]$, and $T$ may be 0.
# Return three tensors: the output $[B, H, 1, d]$, and the keys and values with the new token at their end.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# What does the last row of a causal mask look like?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The new token attends to itself as well, so do two things in the right order.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# With a single query that may see everything, no mask is needed.
# `F.scaled_dot_product_attention` without a mask does the rest.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_cached_step(q, k, v, keys, values):
    """Output [B, H, 1, d] of the new token, and keys and values [B, H, T + 1, d]."""
    keys = torch.cat([keys, k], dim=-2)
    values = torch.cat([values, v], dim=-2)
    return F.scaled_dot_product_attention(q, keys, values), keys, values


# %% tags=["check"]
checks.cached_attention(my_cached_step)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.4: Rotary positions
#
# *(hard, 25 minutes)*
# Write `my_rotary(x, first)`, which turns queries or keys by their position.
# `x` is $[\ldots, T, d]$ with even $d$, and its tokens stand at the positions `first`, `first` + 1, and so on.
# The numbers $2i$ and $2i+1$ of a token form a pair, a point in the plane; at position $p$ it is turned counter-clockwise by the angle $p / 10000^{2i/d}$.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# A point $(a, b)$ that is turned by $\alpha$ becomes $(a \cos\alpha - b \sin\alpha,\; a \sin\alpha + b \cos\alpha)$.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Make the angles first, $[T, d/2]$: a column of positions times a row of speeds.
# Then take `x[..., 0::2]` and `x[..., 1::2]` for $a$ and $b$.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `torch.stack([first_numbers, second_numbers], dim=-1).flatten(-2)` puts the pairs in turn again.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_rotary(x, first):
    """x [..., T, d] with each pair of numbers turned by its position."""
    length, width = x.shape[-2:]
    positions = first + torch.arange(length)[:, None]  # [T, 1]
    angles = positions / 10000 ** (torch.arange(0, width, 2) / width)  # [T, d / 2]
    a, b = x[..., 0::2], x[..., 1::2]
    turned = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
    return torch.stack(turned, dim=-1).flatten(-2)


# %% tags=["check"]
checks.rotary(my_rotary)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.5: Attention without a softmax
#
# *(hard, 20 minutes)*
# Write `my_linear_attention(q, k, v)` without a softmax.
# Query $i$ gives key $j$ the weight $\phi(q_i) \cdot \phi(k_j)$, divided by the sum of its weights over all keys, where $\phi(x) = \text{ELU}(x) + 1$ acts on each number.
# `q` is $[\ldots, T_q, d]$, `k` is $[\ldots, T_k, d]$ and `v` is $[\ldots, T_k, d_v]$; the result is $[\ldots, T_q, d_v]$.
# Make no matrix of size $T_q$ by $T_k$.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# $(\phi(Q)\, \phi(K)^\top)\, V = \phi(Q)\, (\phi(K)^\top V)$: brackets may be moved.
# Which bracket is small?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The sum of a query's weights needs no matrix either: $\sum_j \phi(q_i) \cdot \phi(k_j) = \phi(q_i) \cdot \sum_j \phi(k_j)$.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# $\phi(K)^\top V$ is $[d, d_v]$, and $\sum_j \phi(k_j)$ is $[d]$.
# The query is multiplied by both, and one result is divided by the other.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_linear_attention(q, k, v):
    """Attention [..., Tq, d_v] whose cost grows with the length, not with its square."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    summary = k.transpose(-2, -1) @ v  # [..., d, d_v]
    total = q @ k.sum(dim=-2)[..., None]  # [..., Tq, 1]
    return q @ summary / total


# %% tags=["check"]
checks.linear_attention(my_linear_attention)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.6: A window to either side
#
# *(easy, 10 minutes)*
# Write `my_window_mask(length, reach)` for *local* attention: each query sees itself and at most `reach` tokens to either side.
# The result is boolean, $[T, T]$ with queries in the rows, and True means "may attend".

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Write down the mask for four tokens and a reach of 1.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# What has to be true of the distance between the places of a query and a key?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `torch.arange(length)[:, None] - torch.arange(length)` holds all distances, with their signs.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_window_mask(length, reach):
    """Boolean [length, length]: True where query and key are at most `reach` apart."""
    places = torch.arange(length)
    return (places[:, None] - places).abs() <= reach


# %% tags=["check"]
checks.window_mask(my_window_mask)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.7: What a cache weighs
#
# *(easy, 5 minutes)*
# A language model has 24 layers of 16 heads, each head of width 64, and keeps its cache in half precision, 2 bytes a number.
# How many MiB does the cache of one sequence of 4096 tokens take?

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# What does the cache of one head hold for one token?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Count the numbers first: two kinds of vectors, for each layer, head and token.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# One MiB is $1024^2$ bytes.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
cache_memory = 2 * 24 * 16 * 64 * 4096 * 2 / 1024**2

# %% tags=["check"]
checks.cache_memory(cache_memory)

# %% [markdown] tags=["exercise"]
# ### Exercise 5.8: What a head shows and what it is worth
#
# *(medium, 5 minutes)*
# In the second layer of the model that reverses, nearly every head looks at the answer with nearly all its weight, and about half of these heads can be made to attend evenly at no cost.
# What follows?
#
# - **a** The model uses each of these heads all the same, since its map shows that it looks at the answer.
# - **b** The measurement must be wrong, since the maps are right.
# - **c** The heads share the same work: a map shows what a head looks at, and not what it is worth.
# - **d** The second layer is of no use, and all its heads could attend evenly at no cost.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# What does a map show: what a head reads, or what becomes of it?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Look at the table of the model that you trained, at the rows of single heads and at the rows *all*.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# If one of two people who do the same work stays at home, the work is done.
# And if both do?
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
weight_and_worth = "c"

# %% tags=["check"]
checks.weight_and_worth(weight_and_worth)

# %% [markdown]
# ### Further
#
# These are small experiments without a check.
#
# 1. *(easy, 10 minutes)* In place of the first digit, make the second one wrong under teacher forcing. What happens to the third? Which carry does it need?
# 2. *(easy, 10 minutes)* How many bytes does the cache of the addition model hold after it has written a sum, for a batch of 100? Work it out on paper, then ask `num_bytes`.
# 3. *(medium, 20 minutes)* Write causal linear attention as a loop that keeps a state of shape $[d, d]$ and a sum of shape $[d]$, and check it against `linear_attention(..., causal=True)`.
# 4. *(hard, 40 minutes)* Train the windowed model of the last comparison with four layers. How far can a digit travel through them, and does the model learn to reverse?
#
# <a id="Sources"></a>
# ## Sources
#
# - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, Ł. Kaiser, I. Polosukhin (2017). *Attention Is All You Need.* NeurIPS. The decoder, cross-attention, and sinusoidal positions.
# - N. Lee, K. Sreenivasan, J. D. Lee, K. Lee, D. Papailiopoulos (2023). *Teaching Arithmetic to Small Transformers.* arXiv:2307.03381. Sums written from the last digit to the first.
# - N. Shazeer (2019). *Fast Transformer Decoding: One Write-Head is All You Need.* arXiv:1911.02150. Keys and values shared by all heads.
# - J. Su, Y. Lu, S. Pan, A. Murtadha, B. Wen, Y. Liu (2021). *RoFormer: Enhanced Transformer with Rotary Position Embedding.* arXiv:2104.09864.
# - O. Press, N. A. Smith, M. Lewis (2022). *Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation.* ICLR.
# - A. Katharopoulos, A. Vyas, N. Pappas, F. Fleuret (2020). *Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention.* ICML.
# - I. Beltagy, M. E. Peters, A. Cohan (2020). *Longformer: The Long-Document Transformer.* arXiv:2004.05150. Attention in a window.
# - T. Dao, D. Y. Fu, S. Ermon, A. Rudra, C. Ré (2022). *FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness.* NeurIPS. A fused kernel.
# - S. Jain, B. C. Wallace (2019). *Attention is not Explanation.* NAACL-HLT.
# - S. Wiegreffe, Y. Pinter (2019). *Attention is not not Explanation.* EMNLP-IJCNLP.
# - P. Michel, O. Levy, G. Neubig (2019). *Are Sixteen Heads Really Better than One?* NeurIPS. Most heads can be removed one at a time.
