"""Answers to the exercises of notebook 04: right ones, written in unusual ways, and wrong ones that no check knows."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def odd_loss_by_loops(scores, positions):
    total = 0.0
    for row, place in zip(scores, positions.tolist(), strict=True):
        total = total + torch.logsumexp(row, 0) - row[place]
    return total / len(scores)


def least_similar_by_loops(sets, centre):
    found = []
    for images in sets - centre:
        sums = [sum(torch.cosine_similarity(a, b, dim=0) for b in images) for a in images]
        found.append(min(range(len(sums)), key=lambda i: sums[i].item()))
    return found


def least_similar_by_sums(sets, centre):
    d = (sets - centre) / (sets - centre).norm(dim=-1, keepdim=True)
    return torch.einsum("btd,bd->bt", d, d.sum(1)).argmin(1)


def mean_by_loops(features, is_real):
    rows = [f[m].mean(0) if m.sum() > 0 else torch.zeros(f.shape[-1]) for f, m in zip(features, is_real, strict=True)]
    return torch.stack(rows)


def mean_by_nanmean(x, mask):
    return torch.nan_to_num(x.masked_fill(~mask.unsqueeze(-1), math.nan).nanmean(1))


RIGHT = {
    "odd_one_loss": [
        odd_loss_by_loops,
        nn.CrossEntropyLoss(),
        lambda s, p: F.nll_loss(s.log_softmax(1), p),
        lambda s, p: -(F.one_hot(p, s.shape[1]) * s.log_softmax(-1)).sum() / len(s),
    ],
    "least_similar": [
        least_similar_by_loops,
        least_similar_by_sums,
        lambda x, c: F.cosine_similarity((x - c)[:, :, None], (x - c)[:, None], dim=-1).mean(-1).min(-1).indices,
    ],
    "set_mean": [
        mean_by_loops,
        mean_by_nanmean,
        lambda x, m: x.masked_fill(~m[..., None], 0).sum(-2) / m.sum(-1, keepdim=True).clamp_min(1),
    ],
}

UNKNOWN = {
    "odd_one_loss": [
        lambda s, p: F.cross_entropy(s, p, reduction="none"),
        lambda s, p: F.mse_loss(s.softmax(-1), F.one_hot(p, s.shape[1]).float()),
        lambda s, p: F.cross_entropy(s, torch.zeros_like(p)),
        lambda s, p: F.cross_entropy(s / 10, p),
        lambda s, p: (s.argmax(-1) == p).float().mean(),
    ],
    "least_similar": [
        lambda x, c: torch.cdist(x, x).sum(-1).argmin(-1),
        lambda x, c: (x - c).norm(dim=-1).argmax(-1),
        lambda x, c: torch.full((len(x),), x.shape[1] - 1),
        lambda x, c: least_similar_by_sums(x, -c),
        lambda x, c: F.cosine_similarity((x - c)[:, :, None], (x - c)[:, None], dim=-1).sum(-1),
    ],
    "set_mean": [
        lambda x, m: x.masked_fill(~m[..., None], 0).amax(1),
        lambda x, m: x.masked_fill(~m[..., None], 0).sum(1) / (m.sum(1, keepdim=True) + 1),
        lambda x, m: x[:, 0],
        lambda x, m: mean_by_loops(x, m).mean(0),
        lambda x, m: np.zeros((x.shape[0], x.shape[2])),
    ],
}

NUMBERS = {"guessing_loss": ([math.log(10), 2.3, -math.log(0.1)], [5, -3, 0.5, 10])}
CHOICES = {"learned_the_place": "b"}
