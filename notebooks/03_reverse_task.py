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
# # The reverse task
#
# **What you will build.**
# You train a Transformer to reverse a sequence of digits, twice over: once from nothing, while you watch the loss, and once by loading a checkpoint that somebody trained before.
# Then you look inside and measure how much of its attention lies where it should, and what the rest of it follows.
# In the end you ask recurrent networks of the same size to do the same.
#
# **What you need to know.**
# Notebooks 01 and 02: attention, the encoder block, positional encoding, and the schedule.
#
# **How long it takes.**
# Reading takes about 30 minutes.
# Running it takes about twenty seconds on a laptop.
# The full profile, which is the published recipe, takes about a minute on a GPU, and a few minutes on a laptop.
#
# **Notation.**
#
# | symbol | meaning |
# | --- | --- |
# | $B$ | number of sequences in a batch |
# | $T$ | length of a sequence, here 16 |
# | $C$ | number of different digits, here 10 |
# | $D$ | width of a token's vector in the model, here 32 |

# %% tags=["parameters"]
from typing import Optional

profile: str = "quick"  # one of: quick, full; full trains by the published recipe
max_epochs: Optional[int] = None  # None: as the profile says; a number always trains
checkpoint: str = "auto"  # one of: auto, required, none; whether the second model is loaded
seed: int = 42  # of the data, the initial weights and the order of the batches
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
import torch
import torch.nn.functional as F
from torch import nn

from course_utils import interactive, plotting
from course_utils.experiments import recurrent_reversal
from course_utils.experiments.mirror_profile import mirror_profile
from course_utils.machine import Machine
from course_utils.results import record
from course_utils.reverse import RECIPES, ReverseDataset, ReversePredictor, train_reverse
from course_utils.training import History

# %% [markdown]
# ## The task and its data
#
# The input is a sequence of 16 random digits; the target is the same sequence, reversed.
# A person finds that easy, and a program does it in one line.
# For a network it is a clean test of **long-range** relations: the answer for the first position stands at the last, 15 steps away.
# A recurrent network has to carry it through all the steps between, while attention can look there directly, if it learns where *there* is.
# How much harder that makes the task you measure at the end of this notebook.
#
# The digits are random, so nothing about a digit can be guessed from its neighbours.
# There is no shortcut: the only way to be right is to find the mirrored position.

# %%
dataset = ReverseDataset(num_categories=10, seq_len=16, size=1_000, seed=seed)
sequence, flipped = dataset[0]
print("input ", sequence.tolist())
print("target", flipped.tolist())

# %% [markdown]
# ## One-hot vectors or an embedding
#
# A digit is a category: 7 is not "more" than 3.
# So it enters the model as a **one-hot vector**, $C$ numbers of which one is 1 and the others 0.
# A linear layer then maps it to width $D$, and since all but one input are 0, it just picks out one column of its weight matrix.
# An **embedding** layer does the same without the multiplication: it looks the vector up.
# The two are the same function, as the next cell shows.
# One-hot vectors are convenient for ten digits; with the fifty thousand tokens of a language model, the lookup saves nearly all the work.

# %%
torch.manual_seed(seed)
one_hot = F.one_hot(sequence, num_classes=10).float()  # [T] -> [T, C]
linear = nn.Linear(10, 32)
embedding = nn.Embedding(10, 32)
with torch.no_grad():
    embedding.weight.copy_(
        linear.weight.T + linear.bias
    )  # row c: column c of the linear layer, plus its bias
    torch.testing.assert_close(linear(one_hot), embedding(sequence))
print("one-hot", list(one_hot.shape), "embedded", list(embedding(sequence).shape))

# %% [markdown]
# ## The predictor
#
# `ReversePredictor` is the `TransformerPredictor` of notebook 02 with a loss for this task.
# Its parts, in order:
#
# 1. `input_net`: a linear layer from $C$ to $D$.
# 2. `positional_encoding`: adds the position. Without it the task could not be solved, since reversing is about nothing but positions.
# 3. `transformer`: the encoder, here a single block with a single head.
# 4. `output_net`: a small network on each token, from $D$ to $C$ numbers, the *logits*.
#
# The loss is the cross-entropy between the logits and the target digit, averaged over the batch and over positions.
# The accuracy counts single digits, not whole sequences.

# %%
recipe = RECIPES[profile]
untrained = ReversePredictor(max_iters=1, **recipe.model)
for name, part in untrained.named_children():
    print(f"{name:<20} {sum(p.numel() for p in part.parameters()):>6,} parameters")
record("num_parameters", sum(p.numel() for p in untrained.parameters()))
print(
    "recipe:",
    dict(recipe.model),
    "batches of",
    recipe.batch_size,
    "for",
    recipe.max_epochs,
    "epochs",
)

# %% [markdown]
# ## Training from nothing
#
# `train_reverse` does what every training function of this course does:
#
# - It **loads a checkpoint** if there is one that fits, unless you ask it to train.
# - It trains with Adam and the schedule of notebook 02, and **validates** after each epoch, on sequences that are not trained on.
# - It **keeps the best model** by validation loss and returns that one, not the last: a model can get worse again, and the last epoch is as arbitrary as any other.
# - It writes **logs** to `runs/training/`, as CSV files, or for TensorBoard where that is installed.
# - It **clips the gradient**: if its norm over all parameters exceeds 5, it is scaled down to 5.
#
# Why clip?
# A step of gradient descent trusts that the loss is nearly a straight line over the length of the step.
# Where the loss is steep, the gradient is long and the step overshoots, perhaps to where the model has to start over.
# Clipping keeps the direction and limits the length.
# Below you measure how often it is needed here.
#
# The published recipe takes 3,900 steps with a highest learning rate of 0.0005.
# The quick profile takes 300 steps at ten times that rate, which a model of this size can bear after a warm-up.

# %% tags=["nbval-ignore-output"]
history = History()
machine = Machine(devices, num_nodes, strategy, precision=precision, compile=compile_model)
trained, trained_accuracy = train_reverse(
    profile=profile,
    checkpoint="none",
    max_epochs=max_epochs,
    seed=seed,
    callbacks=[history],
    machine=machine,
)

# %% tags=["trained"]
record("trained_test_acc", trained_accuracy["test_acc"])
record("trained_val_acc", trained_accuracy["val_acc"])
plotting.show(
    plotting.learning_curves(**history.curves, loss_unit="nats a digit"),
    alt="Three panels against the optimizer step. The loss stays near that of guessing, "
    "then falls steeply by several orders of magnitude. The learning rate climbs and "
    "decays. Validation accuracy reaches 1.",
)

# %% tags=["trained"]
plotting.show(
    plotting.curves(
        range(1, len(history.gradient_norm) + 1),
        {"before clipping": history.gradient_norm},
        xlabel="optimizer step",
        ylabel="norm of the gradient",
        yscale="log",
        reference=(recipe.gradient_clip_val, "clipped above"),
    ),
    alt="Norm of the gradient against the step, on a logarithmic axis. It peaks while the "
    "loss falls, stays below the line at which it would be clipped, and then shrinks.",
)
clipped = sum(norm > recipe.gradient_clip_val for norm in history.gradient_norm)
record("steps_clipped", clipped)

# %% [markdown]
# The loss has a plateau and a cliff: for a while the model does little better than guessing, and once attention has found the mirrored position, it is right almost at once.
# In this run the number of steps that were clipped is the one recorded above.
# Where it is 0, clipping changed nothing: it is a safety belt, and a model as small and shallow as this one does not need it.

# %% [markdown]
# ## Loading a checkpoint
#
# Most models that you will use were trained by somebody else.
# A **checkpoint** holds the weights and what is needed to build the model around them, its hyper-parameters.
#
# One caution: PyTorch stores checkpoints with Python's pickle, and a pickle can carry code that runs when it is opened.
# The course loads every checkpoint with `weights_only=True`, which refuses anything but tensors and plain values.
#
# With `checkpoint="auto"`, as here, `train_reverse` loads the saved model if it finds it, and else trains one.

# %% tags=["nbval-ignore-output"]
if (
    checkpoint == "none" or max_epochs is not None
):  # you asked for training, and that is done
    model, accuracy = trained, trained_accuracy
else:
    model, accuracy = train_reverse(
        profile=profile, checkpoint=checkpoint, seed=seed, machine=machine
    )

# %% tags=["trained"]
print(f"{'':<16} {'validation':>10} {'test':>8}")
for name, result in {"trained here": trained_accuracy, "checkpoint": accuracy}.items():
    print(f"{name:<16} {result['val_acc']:>10.2%} {result['test_acc']:>8.2%}")
record("test_acc", accuracy["test_acc"])
record("val_acc", accuracy["val_acc"])

# %% [markdown]
# Both reverse the sequences of the test set, 10,000 that neither has seen.
# The published model of the tutorial that this course follows reaches 100 % as well.

# %% [markdown]
# ## Where the model looks
#
# **Claim.** On this task, attention lies on the anti-diagonal: query $p$ attends to position $T - 1 - p$.
#
# That is where the answer is, so a model with one layer and one head has nowhere else to get it from.
# The claim would be refuted by a model that is right with its weight elsewhere.

# %%
x = model.one_hot(sequence[None])  # [1, T, C]
with torch.no_grad():
    predicted = model(x).argmax(dim=-1)[0]  # [T]
print("input    ", sequence.tolist())
print("predicted", predicted.tolist())
(attention,) = model.get_attention_maps(x)  # one layer: [1, H, T, T]
plotting.show(
    plotting.attention_maps([attention[0]], queries=sequence.tolist()),
    alt="Attention map of the model on one sequence, with its digits on both axes: the "
    "largest weights lie on the line from bottom left to top right, each query "
    "looking at its mirrored position.",
)

# %% [markdown]
# Below, the same model runs in this page: its weights are part of it.
# Type other digits, and watch the output and the attention change.

# %% tags=["trained"]
with torch.no_grad():
    logits = model(x)[0]  # [T, C]
interactive.show(
    interactive.reverse_live(model.state_dict(), sequence, logits, attention[0, 0])
)


# %% tags=["trained"]
def weight_on_flipped_index(model):
    """Mean weight that a query gives to its mirrored position; how often it is the largest."""
    (attention,) = model.get_attention_maps(model.one_hot(dataset.data))  # [1000, H, T, T]
    mirrored = attention.flip(-1).diagonal(
        dim1=-2, dim2=-1
    )  # [1000, H, T]: the anti-diagonal
    return mirrored.mean().item(), (
        mirrored == attention.amax(dim=-1)
    ).float().mean().item()


weight, largest = weight_on_flipped_index(model)
untrained_weight, _ = weight_on_flipped_index(untrained.eval())
record("weight_on_flipped", weight)
record("flipped_is_largest", largest)
record("weight_on_flipped_untrained", untrained_weight)
record("weight_on_flipped_trained", weight_on_flipped_index(trained)[0])

# %% [markdown]
# A query that spread its attention evenly would give each position a weight of $1/16$, and the untrained model is close to that.
# The trained one gives most of its weight to the mirrored position.
# The model gets away with the rest, because the digit with the largest weight dominates the sum, and the output network picks it out.
#
# One sequence is one sequence.
# The next map is the mean over 1,000 of them: what all have in common stays, and what depends on the digits is averaged away.

# %%
(attention_of_many,) = model.get_attention_maps(
    model.one_hot(dataset.data)
)  # [1000, H, T, T]
plotting.show(
    plotting.attention_maps([attention_of_many.mean(dim=0)]),
    alt="Mean attention map over 1,000 sequences, with positions on both axes: a bright "
    "anti-diagonal, its direct neighbours faintly lit, and darkness elsewhere.",
)

# %% [markdown]
# ## What is off the anti-diagonal
#
# **Claim.** What the model gives to other positions follows the similarity of their encodings to that of the mirrored one.
#
# The model has to find a position by its encoding, so it can only mistake it for one whose encoding is similar.
# In notebook 02 you saw that the similarity of two encodings, the cosine of the angle between them, depends on their distance alone.
# It falls with the distance, but not all the way: it rises again where the fast sines have gone round once.
# That makes the claim one that can fail.
# It would be refuted by weights that go with the mere distance as well as they go with the similarity.
#
# A weight is the exponential of a score (divided by the same sum for all keys of a query), so it is the *logarithm* of the weight that is compared.
# Call $d$ the distance of a key from the query's mirrored position.
# The cell takes the mean logarithm of the weights at each $d$, and its correlation with the similarity at $d$, for $d$ from 1 on.

# %% tags=["trained"]
profile = mirror_profile(attention_of_many, d_model=model.hparams.model_dim)
print("distance  mean weight  similarity")
for distance in range(16):
    print(
        f"{distance:>8}  {profile['weight'][distance]:>11.1e}  {profile['similarity'][distance]:>10.3f}"
    )
record("weight_similarity_correlation", profile["correlation"])
record("weight_distance_correlation", profile["correlation_with_distance"])
plotting.show(
    plotting.mirror_profile(
        profile["distance"], profile["log_weight"], profile["similarity"]
    ),
    alt="Left, two curves over the distance from the mirrored position: the attention "
    "weight on a logarithmic axis and the similarity of the encodings. Both fall until a "
    "distance of 9 or 10, rise to a second hump at 12 or 13 and fall again. Right, one "
    "against the other: the dots rise from bottom left to top right.",
)

# %% [markdown]
# Both curves fall, rise to a second hump and fall again, and the hump is at the same distances.
# A model that had learnt "the nearer, the more" would have no hump.
# The first of the two correlations compares with the similarity, the second with the mere distance, where a perfect relation would be $-1$.
#
# What this does not show: that similarity is all there is.
# The model learns which of the sines to listen to, and the cosine weights all of them alike, so the relation is not exact.
# With another seed the second correlation varies a lot more than the first one does, and in some of them it is as strong: fifteen distances are few.
# And the hump is small in absolute terms: nearly all weight that is not on the mirrored position is on its two neighbours.
#
# Nor does it show that attention maps explain a model in general.
# In deeper models a token's vector holds a mixture of other tokens, and a weight on it says little about which of them mattered.
# [Jain & Wallace (2019)](#Sources) and [Wiegreffe & Pinter (2019)](#Sources) argue about how far such maps can be trusted.

# %% [markdown]
# ## Recurrent networks on the same task
#
# **Claim.** A recurrent network of equal size has difficulty reversing what one attention layer reverses.
#
# It would be refuted by a recurrent network of about as many parameters that is right as often after as many steps.
#
# The recurrent networks are made of **LSTMs** ([Hochreiter & Schmidhuber, 1997](#Sources)).
# An LSTM reads a sequence step by step and keeps a state, a vector that it updates at each step; gates decide what is kept.
# There are several ways to let it answer:
#
# - **One-directional**: it reads from left to right and answers at each position from its state there.
# - **BiLSTM**: a second one reads from right to left, and the answer at a position is drawn from both states there ([Schuster & Paliwal, 1997](#Sources)). One is as large as the attention model, another one seven times as large.
# - **Encode-decode**: one LSTM reads the whole sequence, and another one takes over its last state and writes the answer digit by digit ([Sutskever et al., 2014](#Sources)). In training the writer is told the right digit before, which is called *teacher forcing* ([Williams & Zipser, 1989](#Sources)); in the test it has only its own.
#
# ### A ceiling that has nothing to do with memory
#
# The one-directional network cannot solve this task, however large it is.
# The answer at position $p$, from 0, stands at position $T - 1 - p$ of the input.
# In the second half of the positions that has been read already.
# In the first half it has not, and the digit must be guessed, which succeeds once in $C$ times.
# So for even $T$ the best accuracy it can reach is
#
# $$\frac{1}{2} \left( 1 + \frac{1}{C} \right).$$
#
# A comparison with it alone would say nothing about memory.
# It is measured here to be seen for what it is.

# %%
ceiling = recurrent_reversal.ceiling_of_one_direction()  # [T]
record("ceiling_one_direction", sum(ceiling) / len(ceiling))

# %% [markdown]
# ### A fair race
#
# All networks see the same number of sequences, drawn anew for each step, with the same optimizer, warm-up and clipping.
# Each has the best learning rate of a coarse grid, chosen for it by a run that is not counted.
# Each is trained with three seeds.
# All that takes longer than you may want to wait, so the cell reads the results from a file, and the one after it measures one of the networks anew.

# %%
committed = recurrent_reversal.recorded()
measured = committed["measured"]
few, many = str(recurrent_reversal.STEPS), str(recurrent_reversal.MANY_STEPS)
print(f"measured by: {committed['made']['command']}, seeds {committed['made']['seeds']}")
print(f"\n{'':<30} {'parameters':>10} {'steps':>6} {'rate':>6}  accuracy of each seed")
for name, of_network in measured.items():
    for steps in (few, many):
        if steps not in of_network:  # attention needs no more
            continue
        of_runs = of_network[steps]
        accuracies = "  ".join(f"{value:.1%}" for value in of_runs["accuracy"])
        parameters = f"{of_network['parameters']:,}"
        print(f"{name:<30} {parameters:>10} {steps:>6} {of_runs['rate']:>6g}  {accuracies}")

# %%
panels = {
    f"after {int(steps):,} steps": (
        range(16),
        {
            name: measured[name][steps]["per_position"]
            for name in recurrent_reversal.NETWORKS
            if steps in measured[name]
        },
    )
    for steps in (few, many)
}
plotting.show(
    plotting.panels_over_runs(
        panels,
        xlabel="position of the answer, from 0",
        ylabel="accuracy",
        reference=(ceiling, "most that one direction can reach"),
        ylim=(0, 1.05),
    ),
    alt="Accuracy at each of the 16 positions, after a short run left and a long one right. "
    "Left, attention is at 1 everywhere. The two BiLSTMs are best in the middle and at the "
    "ends, the encode-decode LSTM falls from near 1 at the first position to a third, and the "
    "one-directional LSTM guesses in the first half. Right, the recurrent ones are higher, "
    "with the same shapes.",
)

# %%
panels = {
    f"a run of {int(steps):,} steps": (
        measured["BiLSTM"][steps]["evaluated_after"],
        {
            name: measured[name][steps]["curves"]
            for name in measured
            if steps in measured[name]
        },
    )
    for steps in (few, many)
}
plotting.show(
    plotting.panels_over_runs(
        panels,
        xlabel="optimizer step",
        ylabel="accuracy over all positions",
        reference=(sum(ceiling) / len(ceiling), "most that one direction can reach"),
        ylim=(0, 1.05),
    ),
    alt="Accuracy against the optimizer step, a short run left and a long one right. Left, "
    "attention jumps to 1 within a third of the run; all others climb slowly. Right, the "
    "large BiLSTM and the encode-decode LSTM come near 1, the small BiLSTM does not, the "
    "one-directional LSTM stays below its ceiling, and copying stays at guessing.",
)

# %% tags=["trained"]
again = recurrent_reversal.reversal("BiLSTM", seed=seed, lr=measured["BiLSTM"][few]["rate"])
print(
    f"BiLSTM, seed {seed}: {again['accuracy']:.1%} after {few} steps; in the file:",
    "  ".join(f"{value:.1%}" for value in measured["BiLSTM"][few]["accuracy"]),
)
record("bilstm_acc", again["accuracy"])

# %% [markdown]
# After as many steps as attention needs to be right everywhere, no recurrent network is right in many more than half of the answers, the seven times larger one included: at equal steps the claim stands.
#
# *Where* they are right tells why.
# The BiLSTM is right in the middle, where the answer stands close by, and does better at the ends than halfway to them: there the digit it needs is the first or the last that it read.
# The encode-decode LSTM begins with what it read last, and gets worse with each digit that it had to keep longer.
# The one-directional LSTM guesses in the first half, as it must, and stays below its ceiling in the second.
#
# The longer runs tell what kind of difficulty it is.
# The large BiLSTM and the encode-decode LSTM of equal size come close to solving the task in the longer run: they can do it, and learn it slowly.
# The BiLSTM of equal size is still wrong in a good part of its answers.
# So "recurrent networks cannot reverse" would be false; what is true is that they need more steps, or more parameters, or an arrangement that suits the task.
#
# The encode-decode LSTM has such an arrangement.
# Reversed, the last digit read is the first one written, so the first answers depend on what was read a moment ago, and learning can begin there.
# Ask the same network to *copy*, which sounds easier, and every answer lies sixteen steps back: after the short run it still guesses, at every learning rate of the grid.
# Sutskever et al. found the same with translation: it helped a lot to feed the source sentence in reverse.
# (The long run of copying has the rate that happened to come out first among equally bad ones, so it says little.)
#
# What this does not show: that attention is better in general.
# The task suits it: the answer is at a fixed place, and the encoding of that place is a linear function of the position's own, as notebook 02 shows.
# In the short run the best rate of every recurrent network is the highest of the grid, so a wider search may find them somewhat better.
# And other recurrent cells, or more care with their initial weights, were not tried.

# %% [markdown]
# ## Recap
#
# - The reverse task can only be solved by looking at the mirrored position, so it tests long-range relations and nothing else.
# - A linear layer on one-hot vectors is an embedding.
# - The returned model is the best one by validation, and the test set is used once, at the end.
# - Gradient clipping limits the length of a step; whether it is needed can be measured.
# - A checkpoint holds weights and hyper-parameters, and is loaded without running any code in it.
# - The attention of the trained model lies on the anti-diagonal, and what is off it follows the similarity of positions.
# - Recurrent networks learn to reverse far more slowly than attention; a one-directional one cannot, because it has not seen half the answers.

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
# ### Exercise 3.1: The loss of a digit
#
# *(easy, 10 minutes)*
# Write `my_loss(logits, targets)`, the mean cross-entropy of a digit, in nats, as a tensor without axes.
# `logits` is $[B, T, C]$, and `targets` holds the right digits, $[B, T]$, as the data set gives them.
# You may use PyTorch's functions.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# The cross-entropy is minus the logarithm of the probability that the model gives to the right digit.
# Here it is averaged over the batch and over positions.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# `F.cross_entropy` wants the classes on axis 1, or a table $[N, C]$ of logits with a list $[N]$ of targets.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `flatten(0, 1)` makes one long list of all positions of all sequences.
# The softmax is inside `F.cross_entropy`.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_loss(logits, targets):
    """Mean cross-entropy of a digit, from logits [B, T, C] and targets [B, T]."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# %% tags=["check"]
checks.token_loss(my_loss)

# %% [markdown] tags=["exercise"]
# ### Exercise 3.2: Reading an attention map
#
# *(medium, 10 minutes)*
# Write `my_mirrored_weight(attention)`, the mean weight that a query gives to its mirrored position.
# `attention` is $[\ldots, T, T]$, with queries in the rows; the result is one number, the mean over everything.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Mark in a 4 by 4 map the four entries that count.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Query $p$ looks at key $T - 1 - p$.
# If you reverse the order of the keys, these entries lie on the main diagonal.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# `diagonal(dim1=-2, dim2=-1)` takes the main diagonal of the last two axes.
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_mirrored_weight(attention):
    """Mean weight on the anti-diagonal of maps [..., T, T]."""
    return attention.flip(-1).diagonal(dim1=-2, dim2=-1).mean().item()


# %% tags=["check"]
checks.weight_on_mirrored(my_mirrored_weight)

# %% [markdown] tags=["exercise"]
# ### Exercise 3.3: Clipping the gradient
#
# *(medium, 15 minutes)*
# Write `my_clip(gradients, limit)`, which returns a list of clipped gradients and leaves the given ones as they are.
# `gradients` is a list of tensors of any shapes, one for each parameter.
# If the norm of all their numbers together exceeds the limit, all are scaled down by one factor so that it equals the limit.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Think of all gradients as one long vector.
# What is its length?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# The square of its length is the sum of all squares, over all tensors.
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The factor is `limit / length`, and never more than 1.
# What becomes of your factor if all gradients are 0?
# </details>


# %% jupyter={"source_hidden": true} tags=["solution"]
def my_clip(gradients, limit):
    """The gradients, scaled by one factor so that their common norm is at most the limit."""
    length = torch.sqrt(sum(gradient.square().sum() for gradient in gradients))
    factor = limit / length if length > limit else 1.0
    return [gradient * factor for gradient in gradients]


# %% tags=["check"]
checks.clip_by_norm(my_clip)

# %% [markdown] tags=["exercise"]
# ### Exercise 3.4: Digits right and sequences right
#
# *(easy, 5 minutes)*
# The accuracy of this notebook counts digits.
# Suppose that a model gets 99 % of the digits right, each independently of the others.
# What share of the sequences of 16 digits is right as a whole, as a number between 0 and 1?

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# A sequence is right if its first digit is right, and its second, and so on.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# What is the probability that two independent digits are both right?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# Sixteen factors, all the same.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
whole_sequences = 0.99**16

# %% tags=["check"]
checks.whole_sequences(whole_sequences)

# %% [markdown] tags=["exercise"]
# ### Exercise 3.5: What cannot be known yet
#
# *(medium, 10 minutes)*
# A network reads a sequence of 15 random digits from left to right, of 5 kinds, and answers at each position with the reversed sequence's digit there.
# When it answers at a position, it has read the digit at that position, and those before it.
# What share of the digits can it have right at best, on average?

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# The formula of *A ceiling that has nothing to do with memory* is for even lengths.
# What changes for odd ones?
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# Number the positions from 0 to 14.
# For which of them has the answer been read?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# The others are guessed, and a guess among 5 digits is right once in 5 times.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
one_direction_ceiling = (8 + 7 / 5) / 15

# %% tags=["check"]
checks.one_direction_ceiling(one_direction_ceiling)

# %% [markdown] tags=["exercise"]
# ### Exercise 3.6: Right, and not looking only there
#
# *(medium, 5 minutes)*
# The loaded model makes next to no mistakes, and yet a query gives a good part of its weight to other places than the mirrored one.
# How do the two go together?
#
# - **a** The weight on the mirrored position is the probability of being right, so that the model is often wrong.
# - **b** The model reads the answer elsewhere, by a way that the map does not show.
# - **c** The rest of the weight is lost to padding, which the map includes.
# - **d** The right digit only has to have the largest share of the sum, and the output network picks it out.

# %% [markdown] tags=["hint"]
# <details><summary>Hint 1: where to look</summary>
#
# Compare the two recorded numbers: how much weight lies on the mirrored position, and how often it is the largest.
# </details>
#
# <details><summary>Hint 2: how to go about it</summary>
#
# How many layers and heads has this model, and so how many ways from one position to another?
# </details>
#
# <details><summary>Hint 3: almost there</summary>
#
# If the largest part of a mixture says "7", the output network need not be told more.
# </details>

# %% jupyter={"source_hidden": true} tags=["solution"]
spread_weight = "d"

# %% tags=["check"]
checks.spread_weight(spread_weight)

# %% [markdown]
# ### Further
#
# These are small experiments without a check.
#
# 1. *(easy, 5 minutes)* Draw the attention map of `trained` beside that of `model`. Do two models that are both right look alike?
# 2. *(easy, 10 minutes)* Train with `dropout=0.3` (pass it to `train_reverse`). Does the model still reach 100 %?
# 3. *(medium, 15 minutes)* Feed `model` a sequence of 20 digits. Which positions does it get wrong, and can you explain them from the attention map?
# 4. *(medium, 20 minutes)* Subclass `ReversePredictor` to train without positional encoding. What accuracy do you expect for random digits? Compare with the measurement.
# 5. *(hard, 30 minutes)* Find the smallest `model_dim` that still solves the task in 300 steps. What sets the limit: telling 10 digits apart, or 16 positions?
#
# <a id="Sources"></a>
# ## Sources
#
# - P. Lippe. *Tutorial 6: Transformers and Multi-Head Attention.* UvA Deep Learning Tutorials. The task, the recipe of the full profile, and the published checkpoint, which this model can load.
# - R. Pascanu, T. Mikolov, Y. Bengio (2013). *On the difficulty of training Recurrent Neural Networks.* ICML. Gradient clipping by norm.
# - S. Hochreiter, J. Schmidhuber (1997). *Long Short-Term Memory.* Neural Computation 9(8). The LSTM.
# - M. Schuster, K. K. Paliwal (1997). *Bidirectional Recurrent Neural Networks.* IEEE Transactions on Signal Processing 45(11).
# - I. Sutskever, O. Vinyals, Q. V. Le (2014). *Sequence to Sequence Learning with Neural Networks.* NIPS. One LSTM reads, another writes; they fed the source sentence in reverse order.
# - R. J. Williams, D. Zipser (1989). *A Learning Algorithm for Continually Running Fully Recurrent Neural Networks.* Neural Computation 1(2). Teacher forcing.
# - S. Jain, B. C. Wallace (2019). *Attention is not Explanation.* NAACL-HLT.
# - S. Wiegreffe, Y. Pinter (2019). *Attention is not not Explanation.* EMNLP-IJCNLP.
