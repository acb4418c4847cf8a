"""Answers to the exercises of notebook 01: right ones, written in unusual ways, and wrong ones that no check knows."""

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def scores_by_loops(frage, schluessel):
    result = torch.zeros(*frage.shape[:-1], schluessel.shape[-2])
    for i in range(frage.shape[-2]):
        for j in range(schluessel.shape[-2]):
            result[..., i, j] = (frage[..., i, :] * schluessel[..., j, :]).sum(-1) / frage.shape[-1] ** 0.5
    return result


def weights_by_rows(s):
    rows = s.reshape(-1, s.shape[-1])
    return torch.stack([torch.exp(row - row.logsumexp(0)) for row in rows]).reshape(s.shape)


def weights_in_numpy(s):
    numbers = np.exp(s.numpy() - s.numpy().max(-1, keepdims=True))
    return numbers / numbers.sum(-1, keepdims=True)


def masked_by_renormalising(scores, mask):
    lowest = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    powers = (scores - lowest).exp().where(mask, torch.tensor(0.0))
    return powers / powers.sum(-1, keepdim=True)


def masked_additively(s, may_see):
    return F.softmax(s + torch.where(may_see, 0.0, -torch.inf), -1)


def masked_by_sorting_out(scores, mask):
    mask = mask.expand(scores.shape)
    out = torch.zeros_like(scores)
    for index in np.ndindex(*scores.shape[:-1]):
        out[index][mask[index]] = scores[index][mask[index]].softmax(0)
    return out


def padding_by_assignment(lengths, max_len):
    mask = torch.zeros(len(lengths), max_len)
    for row, length in zip(mask, lengths, strict=True):
        row[:length] = 1
    return mask.bool()


def attend_by_loops(q, k, v, mask):
    out = q.new_zeros(*q.shape[:-1], v.shape[-1])
    mask = mask.expand(*q.shape[:-1], k.shape[-2])
    for index in np.ndindex(*q.shape[:-1]):
        seen = mask[index]
        if seen.any():
            scores = k[index[:-1]][seen] @ q[index] / q.shape[-1] ** 0.5
            out[index] = torch.softmax(scores, 0) @ v[index[:-1]][seen]
    return out


def attend_with_pytorch(queries, keys, values, mask):
    blind = ~mask.any(-1, keepdim=True)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask | blind) * ~blind


def attend_with_nan_to_num(q, k, v, mask):
    s = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1])
    return s.masked_fill(mask.logical_not(), -math.inf).softmax(-1).nan_to_num() @ v


def split_by_loops(x, num_heads):
    width = x.shape[2] // num_heads
    return torch.stack([x[:, :, head * width : (head + 1) * width] for head in range(num_heads)], dim=1)


def merge_by_loops(t):
    b, h, n, d = t.shape
    out = torch.empty(b, n, h * d)
    for head in range(h):
        out[:, :, head * d : (head + 1) * d] = t[:, head]
    return out


def change_by_matrix(layer, x, order):
    matrix = torch.eye(len(order))[order]
    return float((layer(matrix @ x) - matrix @ layer(x)).abs().max())


def change_undone(f, tokens, places):
    back = f(tokens[places])[torch.argsort(places)]
    return torch.max(torch.abs(back - f(tokens)))


def change_by_numpy(layer, x, order):
    return np.abs(layer(x[order]).numpy() - layer(x).numpy()[order.numpy()]).max()


def entropy_by_loops(w):
    rows = [sum(-a * math.log(a) for a in row if a > 0) for row in w.reshape(-1, w.shape[-1]).tolist()]
    return torch.tensor(rows).view(w.shape[:-1])


RIGHT = {
    "attention_scores": [
        lambda q, k: torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5,
        scores_by_loops,
        lambda a, b: (a / math.sqrt(b.size(-1))).matmul(b.transpose(-1, -2)),
    ],
    "attention_weights": [weights_by_rows, weights_in_numpy, nn.Softmax(dim=-1)],
    "masked_weights": [masked_by_renormalising, masked_additively, masked_by_sorting_out],
    "padding_mask": [
        lambda n, size: torch.arange(size).expand(len(n), size) < n.unsqueeze(1),
        padding_by_assignment,
        lambda lengths, max_len: [[i < n for i in range(max_len)] for n in lengths.tolist()],
    ],
    "causal_mask": [
        lambda n: torch.ones(n, n).tril() == 1,
        lambda length: torch.arange(length)[None] <= torch.arange(length)[:, None],
        lambda t: np.tri(t, dtype=bool),
    ],
    "attend": [attend_by_loops, attend_with_pytorch, attend_with_nan_to_num],
    "split_heads": [
        split_by_loops,
        lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2),
        lambda tokens, n: torch.stack(tokens.chunk(n, dim=-1), 1),
    ],
    "merge_heads": [
        merge_by_loops,
        lambda x: torch.cat(x.unbind(1), -1),
        lambda heads: heads.permute(0, 2, 1, 3).reshape(heads.shape[0], heads.shape[2], -1),
    ],
    "order_change": [change_by_matrix, change_undone, change_by_numpy],
    "entropy": [entropy_by_loops, lambda a: torch.special.entr(a).sum(-1), lambda a: -torch.xlogy(a, a).sum(-1)],
}

UNKNOWN = {
    "attention_scores": [
        lambda q, k: torch.cdist(q, k) / math.sqrt(q.shape[-1]),
        lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,
        lambda q, k: q @ k.mT / 2,
        lambda q, k: q @ k.mT / math.sqrt(q.size(-1) * k.size(-2)),
    ],
    "attention_weights": [
        lambda s: s / s.sum(-1, keepdim=True),
        lambda s: s.softmax(-2).softmax(-1),
        lambda s: s.sigmoid(),
        lambda s: (s / 2).softmax(-1),
    ],
    "masked_weights": [
        lambda s, m: s.masked_fill(m, -1e4).softmax(-1),
        lambda s, m: s.softmax(-1).masked_fill(~m, -math.inf),
        lambda s, m: s.masked_fill(~m, -1.0).softmax(-1),
        lambda s, m: (s * m).softmax(-1) * m,
    ],
    "padding_mask": [
        lambda n, size: torch.arange(size) > n[:, None],
        lambda n, size: torch.arange(size) < n[:, None] + 2,
        lambda n, size: torch.ones(len(n), size, dtype=torch.bool),
        lambda n, size: n,
    ],
    "causal_mask": [
        lambda n: torch.eye(n, dtype=torch.bool),
        lambda n: torch.ones(n, n, dtype=torch.bool).tril().flip(0),
        lambda n: torch.ones(n, n, dtype=torch.bool).tril(-2),
        lambda n: torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1) == 1, -math.inf),
    ],
    "attend": [
        lambda q, k, v, m: (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1) * m @ v,
        lambda q, k, v, m: (q @ k.mT).masked_fill(~m, -math.inf).softmax(-1) @ v,
        lambda q, k, v, m: attend_with_pytorch(q, k, v, m) + 1e-2,
        lambda q, k, v, m: attend_with_pytorch(q, k, v, m.flip(-1)),
    ],
    "split_heads": [
        lambda x, h: split_by_loops(x, h).flip(1),
        lambda x, h: x.reshape(h, x.size(0), x.size(1), -1).transpose(0, 1),
        lambda x, h: split_by_loops(x.flip(1), h),
        lambda x, h: x.unsqueeze(1).repeat(1, h, 1, 1),
    ],
    "merge_heads": [
        lambda x: x.transpose(1, 2).flip(1).flatten(2),
        lambda x: x.transpose(1, 3).flatten(2),
        lambda x: x[:, 0],
        lambda x: x.transpose(1, 2),
    ],
    "order_change": [
        lambda layer, x, order: (layer(x[order]) - layer(x)[order]).norm(),
        lambda layer, x, order: (layer(x[order]) - layer(x)[order]).pow(2).max(),
        lambda layer, x, order: (layer(x[order]) - layer(x)[order]).abs().max() < 1e-5,
        lambda layer, x, order: (layer(x[order]) - layer(x[order.argsort()])).abs().max(),
    ],
    "entropy": [
        lambda w: -w.log().sum(-1),
        lambda w: (w * (w + 1e-2).log()).sum(-1).neg(),
        lambda w: 1 - w.square().sum(-1),
        lambda w: torch.special.entr(w).sum(-1) / math.log(w.size(-1)),
    ],
}

NUMBERS = {
    "eightfold_length": ([8**1.9, 52, 51.98], [100, -52, 1.9], {"power": 1.9}),
    "weights_memory": ([2048, 8 * 8192**2 * 4 / 1024**2, torch.tensor(2048.0)], [1000, -2048, 3000]),
}
CHOICES = {"why_scale": "c"}

# A partial function and a bound method are functions as well.
RIGHT["causal_mask"].append(partial(lambda n, device: torch.ones(n, n, device=device).tril(), device="cpu"))
