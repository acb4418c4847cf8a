"""Answers to the exercises of notebook 03: right ones, written in unusual ways, and wrong ones that no check knows."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def loss_by_loops(logits, targets):
    losses = [
        torch.logsumexp(token, 0) - token[target]
        for sequence, digits in zip(logits, targets, strict=True)
        for token, target in zip(sequence, digits, strict=True)
    ]
    return sum(losses) / len(losses)


def mirrored_by_loops(maps):
    n = maps.shape[-1]
    return sum(maps[..., p, n - 1 - p].mean() for p in range(n)).item() / n


def clip_by_one_vector(gradients, limit):
    together = torch.cat([g.reshape(-1) for g in gradients])
    factor = min(1.0, limit / (together.norm().item() + 1e-12))
    return [
        part.view_as(g)
        for part, g in zip((together * factor).split([g.numel() for g in gradients]), gradients, strict=True)
    ]


def clip_by_pytorch(gradients, limit):
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, limit)
    return [parameter.grad for parameter in parameters]


def clip_in_numpy(grads, max_norm):
    norm = np.sqrt(sum((g.numpy() ** 2).sum() for g in grads))
    return tuple(g.numpy() / max(1.0, norm / max_norm) for g in grads)


RIGHT = {
    "token_loss": [
        loss_by_loops,
        lambda scores, digits: F.cross_entropy(scores.flatten(0, 1), digits.flatten()),
        lambda logits, t: F.nll_loss(F.log_softmax(logits, -1).permute(0, 2, 1), t),
        lambda x, t: -(F.one_hot(t, x.shape[-1]) * x.log_softmax(-1)).sum(-1).mean(),
    ],
    "weight_on_mirrored": [
        mirrored_by_loops,
        lambda a: a.flip(-1).diagonal(dim1=-2, dim2=-1).mean(),
        lambda m: (m * torch.eye(m.shape[-1]).flip(0)).sum(-1).mean().item(),
        lambda a: np.einsum("...ii->...i", a.numpy()[..., ::-1, :]).mean(),
    ],
    "clip_by_norm": [clip_by_one_vector, clip_by_pytorch, clip_in_numpy],
}

UNKNOWN = {
    "token_loss": [
        lambda x, t: F.mse_loss(x.softmax(-1), F.one_hot(t, x.shape[-1]).float()),
        lambda x, t: F.cross_entropy(x.flatten(0, 1), t.T.flatten()),
        lambda x, t: F.cross_entropy(x.movedim(-1, 1), t, reduction="none"),
        lambda x, t: F.cross_entropy(x.movedim(-1, 1), t, label_smoothing=0.1),
        lambda x, t: F.cross_entropy(x.movedim(-1, 1), t) / math.log(2),
    ],
    "weight_on_mirrored": [
        lambda a: a.flip(-1).diagonal(dim1=-2, dim2=-1).amax(-1).mean(),
        lambda a: a[..., 0, -1].mean(),
        lambda a: a.flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1),
        lambda a: 1 - mirrored_by_loops(a),
    ],
    "clip_by_norm": [
        lambda g, limit: [x / limit for x in g],
        lambda g, limit: [x * min(1.0, limit / (x.abs().max().item() + 1e-9)) for x in g],
        lambda g, limit: clip_by_one_vector(g, 2 * limit),
        lambda g, limit: clip_by_one_vector(g, limit)[0],
        lambda g, limit: [x.sign() for x in g],
    ],
}

NUMBERS = {
    "one_direction_ceiling": ([9.4 / 15, 0.6267, 0.627], [0.5, 0.7, -0.6267, 0.64]),
    "whole_sequences": ([0.99**16, 0.8515, 0.85], [0.16, 0.7, 60]),
}
CHOICES = {"spread_weight": "d"}
