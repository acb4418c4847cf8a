"""Claim: a path between two tokens has length 1 in attention, T in recurrence, T/k in convolutions (log_k T dilated).

Vaswani et al. (2017), table 1. A path shows in its gradient: that of the last token's output by the input n tokens
before it. Refuted if attention's falls with n as a recurrence's does, or if a stack of convolutions connects the two
tokens with fewer layers than that. All layers are as initialised: this says what training starts from, not where it
ends.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import MultiheadAttention


def gradient_reach(
    length: int = 128,
    width: int = 32,
    forget_biases: Sequence[float] = (0.0, 1.0, 3.0),
    seeds: Sequence[int] = range(5),
) -> dict[str, list[list[float]]]:
    """Norm of the gradient of the last token's output by the input n tokens before it, for untrained layers.

    Args:
        length: T, of the sequence of independent normal numbers.
        width: d, of the input and the output; attention has a single head.
        forget_biases: of the LSTM's forget gates, one LSTM for each; other weights are as PyTorch draws them.
        seeds: of the weights and the sequence.

    Returns:
        For "attention" and for "LSTM, forget bias b" the Frobenius norm of the derivative [width, width], as
        [seeds][T], at distance n = 0, 1, ..., T - 1.
    """
    results: dict[str, list[list[float]]] = {}
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            x = torch.randn(length, width, dtype=torch.float64)  # in double precision nothing is lost to underflow
            layers = {"attention": MultiheadAttention(width, width, num_heads=1).double()}
            for bias in forget_biases:
                layers[f"LSTM, forget bias {bias:g}"] = _LSTM(width, bias).double()
        for name, layer in layers.items():
            results.setdefault(name, []).append(gradient_by_distance(layer, x).tolist())
    return results


def gradient_by_distance(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Frobenius norm of the derivative of the last token's output by the input at each distance from it.

    Args:
        layer: [B, T, d] -> [B, T, d_out], each sequence of the batch on its own.
        x: one sequence [T, d].

    Returns:
        [T], by distance: that of the last token itself first, that of the first token last.
    """
    with torch.no_grad():
        outputs = layer(x[None]).size(-1)
    copies = x.expand(outputs, *x.shape).clone().requires_grad_()  # each copy answers for one dimension of the output
    last = layer(copies)[:, -1]  # [d_out, d_out]
    (gradient,) = torch.autograd.grad(last.diagonal().sum(), copies)  # [d_out, T, d]
    return gradient.norm(dim=(0, 2)).flip(0)


def decay_rate(norms: Sequence[float], distances: range) -> float:
    """The factor by which a gradient shrinks with each token, by least squares of its logarithm over some distances.

    Args:
        norms: by distance, from 0.
        distances: those to fit to; `range(1, 65)`, say.
    """
    log_norms = torch.tensor([norms[n] for n in distances], dtype=torch.float64).log()
    n = torch.tensor(list(distances), dtype=torch.float64)
    return math.exp((torch.cov(torch.stack([n, log_norms]))[0, 1] / n.var()).item())


def layers_to_connect(kind: str, distance: int, kernel: int = 3, seed: int = 0) -> int:
    """How many layers it takes until the last token's output depends at all on the input so many tokens before it.

    Layers are added one by one until the gradient is not zero. Convolutions look back only, at the token itself and
    kernel - 1 before it; dilated, layer l looks at every kernel^l-th token.

    Args:
        kind: "attention", "convolution" or "dilated convolution".
        distance: in tokens, at least 1.
        kernel: of the convolutions.
        seed: of the weights and the sequence.

    Raises:
        ValueError: for another kind, or a distance below 1.
    """
    if distance < 1:
        raise ValueError(f"the tokens must lie at least 1 apart, got distance={distance}")
    width = 4
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        x = torch.randn(1, distance + 1, width, dtype=torch.float64, requires_grad=True)
        hidden, layers = x, 0
        while True:
            hidden = _layer_of(kind, width, kernel, dilation=kernel**layers).double()(hidden)
            layers += 1
            (gradient,) = torch.autograd.grad(hidden[0, -1].sum(), x, retain_graph=True)
            if gradient[0, 0].any():
                return layers


class _LSTM(nn.LSTM):
    """An LSTM [B, T, d] -> [B, T, d] whose forget gates begin with a bias."""

    def __init__(self, width: int, forget_bias: float):
        super().__init__(width, width, batch_first=True)
        with torch.no_grad():  # PyTorch adds two biases, and keeps the gates in the order input, forget, cell, output
            self.bias_ih_l0[width : 2 * width] = forget_bias
            self.bias_hh_l0[width : 2 * width] = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[0]


class _BackwardLooking(nn.Conv1d):
    """A convolution [B, T, d] -> [B, T, d] that sees no later token."""

    def forward(self, x: Tensor) -> Tensor:
        before = self.dilation[0] * (self.kernel_size[0] - 1)
        return super().forward(F.pad(x.transpose(1, 2), (before, 0))).transpose(1, 2)


def _layer_of(kind: str, width: int, kernel: int, dilation: int) -> nn.Module:
    if kind == "attention":
        return MultiheadAttention(width, width, num_heads=1)
    if kind == "convolution":
        return _BackwardLooking(width, width, kernel)
    if kind == "dilated convolution":
        return _BackwardLooking(width, width, kernel, dilation=dilation)
    raise ValueError(f"no layer is called {kind!r}; there are 'attention', 'convolution' and 'dilated convolution'")
