"""Answers to the exercises of notebook 02: right ones, written in unusual ways, and wrong ones that no check knows."""

import cmath
import math

import numpy as np
import torch
from torch import nn


def norm_by_loops(x, gamma, beta, epsilon):
    out = torch.empty_like(x)
    for index in np.ndindex(*x.shape[:-1]):
        token = x[index]
        centred = token - token.sum() / len(token)
        out[index] = centred / torch.sqrt((centred**2).sum() / len(token) + epsilon) * gamma + beta
    return out


def norm_in_numpy(x, g, b, eps):
    x, g, b = x.numpy(), g.numpy(), b.numpy()
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * g + b


def norm_by_module(x, gamma, beta, epsilon):
    layer = nn.LayerNorm(x.shape[-1], eps=epsilon)
    layer.load_state_dict({"weight": gamma, "bias": beta})
    return layer(x)


def step_with_early_return(tokens, sublayer, normalise, pre):
    if pre:
        return tokens + sublayer(normalise(tokens))
    return normalise(sublayer(tokens) + tokens)


def step_with_identity(x, part, norm, norm_first):
    before, after = (norm, lambda y: y) if norm_first else (lambda y: y, norm)
    return after(x + part(before(x)))


def step_in_place_of_a_copy(x, part, norm, norm_first):
    y = norm(x.clone()) if norm_first else x.clone()
    y = part(y)
    y += x
    return y if norm_first else norm(y)


def waves_by_assignment(length, width):
    encoding = torch.zeros(length, width)
    position = torch.arange(length).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency)[:, : width // 2]
    return encoding


def waves_with_a_shift_of_phase(n, d):
    j = np.arange(d)
    return np.sin(np.arange(n)[:, None] / 10000.0 ** (2 * (j // 2) / d) + np.pi / 2 * (j % 2))


def waves_by_complex_numbers(length, width):
    table = []
    for p in range(length):
        hands = [cmath.exp(1j * p * 1e4 ** (-2 * i / width)) for i in range((width + 1) // 2)]
        table.append([part for hand in hands for part in (hand.imag, hand.real)][:width])
    return torch.tensor(table)


def rotation_by_assignment(k, d):
    m = torch.zeros(d, d)
    for i in range(0, d, 2):
        angle = torch.tensor(k / 10000 ** (i / d))
        m[i, i] = m[i + 1, i + 1] = angle.cos()
        m[i, i + 1], m[i + 1, i] = angle.sin(), -angle.sin()
    return m


def rotation_by_exponential(offset, width):
    generator = torch.zeros(width, width, dtype=torch.float64)
    for i in range(width // 2):
        generator[2 * i, 2 * i + 1] = 10000.0 ** (-2 * i / width)
        generator[2 * i + 1, 2 * i] = -(10000.0 ** (-2 * i / width))
    return torch.linalg.matrix_exp(offset * generator)


def rotation_by_kronecker(offset, width):
    angles = offset * 10000.0 ** (-np.arange(0, width, 2) / width)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return np.kron(np.diag(np.cos(angles)), np.eye(2)) + np.kron(np.diag(np.sin(angles)), turn)


def factor_by_branches(s, w, m):
    if s >= m:
        return 0
    f = math.cos(math.pi * s / (2 * m)) ** 2
    return f if s >= w else f * s / w


def factor_in_torch(step, warmup, max_iters):
    decay = 0.5 * (1 + torch.cos(torch.tensor(math.pi * min(step / max_iters, 1.0))))
    return decay * (1 if warmup == 0 else min(1, step / warmup))


def factor_by_default(step, warmup, max_iters):
    try:
        climb = min(1.0, step / warmup)
    except ZeroDivisionError:
        climb = 1.0
    return climb * (1 + math.cos(math.pi * step / max_iters)) / 2 * (step < max_iters)


def count_by_modules(width, hidden):
    parts = [nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, hidden), nn.Linear(hidden, width)]
    parts += [nn.LayerNorm(width), nn.LayerNorm(width)]
    return sum(p.numel() for part in parts for p in part.parameters())


RIGHT = {
    "layer_norm": [norm_by_loops, norm_in_numpy, norm_by_module],
    "residual_step": [step_with_early_return, step_with_identity, step_in_place_of_a_copy],
    "sinusoids": [waves_by_assignment, waves_with_a_shift_of_phase, waves_by_complex_numbers],
    "rotation": [rotation_by_assignment, rotation_by_exponential, rotation_by_kronecker],
    "warmup_factor": [factor_by_branches, factor_in_torch, factor_by_default],
    "block_parameters": [
        count_by_modules,
        lambda d, f: 4 * d * d + 2 * d * f + 9 * d + f,
        lambda width, hidden: 4 * (width**2 + width) + (width + 1) * hidden + (hidden + 1) * width + 2 * 2 * width,
    ],
}

UNKNOWN = {
    "layer_norm": [
        lambda x, g, b, e: norm_by_module(x, b, g, e),
        lambda x, g, b, e: g * x / (x.square().mean(-1, keepdim=True) + e).sqrt() + b,
        lambda x, g, b, e: (x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True) + e),
        lambda x, g, b, e: (g + b) * norm_by_module(x, torch.ones_like(g), torch.zeros_like(b), e),
    ],
    "residual_step": [
        lambda x, part, norm, first: norm(x + part(norm(x))),
        lambda x, part, norm, first: norm(x) + part(x),
        lambda x, part, norm, first: part(x + norm(x)),
        lambda x, part, norm, first: x - part(norm(x)) if first else norm(x - part(x)),
    ],
    "sinusoids": [
        lambda n, d: waves_by_assignment(n, d).flip(1),
        lambda n, d: waves_by_assignment(n, d).T,
        lambda n, d: waves_by_assignment(n, d)[None],
        lambda n, d: waves_with_a_shift_of_phase(n, d) * 2,
    ],
    "rotation": [
        lambda k, d: torch.eye(d),
        lambda k, d: rotation_by_assignment(k, d) + torch.eye(d),
        lambda k, d: rotation_by_assignment(2 * k, d),
        lambda k, d: rotation_by_assignment(k, d).flip(0),
    ],
    "warmup_factor": [
        lambda s, w, m: max(0.0, 1 - s / m),
        lambda s, w, m: (w or 1) ** -0.5 if s == 0 else min(s**-0.5, s * (w or 1) ** -1.5),
        lambda s, w, m: factor_by_branches(s, w, m) ** 2,
        lambda s, w, m: factor_by_branches(s, m, w) if w else 1.0,
        lambda s, w, m: min(1, s / w) * (1 + math.cos(math.pi * s / m)) / 2,  # two mistakes at once
    ],
    "block_parameters": [
        lambda d, f: 12 * d * d,
        lambda d, f: 4 * d * d + 2 * d * f + 9 * d + 2 * f,
        lambda d, f: d * f,
        lambda d, f: (4 * d * d + 2 * d * f + 9 * d + f) * 4,
    ],
}

NUMBERS = {}
CHOICES = {"stepped_each_epoch": "b", "when_warmup_matters": "d"}
