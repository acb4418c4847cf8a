"""Answers to the exercises of notebook 05: right ones, written in unusual ways, and wrong ones that no check knows."""

import math

import numpy as np
import torch
import torch.nn.functional as F


def shift_by_assignment(target, start):
    shifted = target.clone()
    shifted[:, 1:] = target[:, :-1]
    shifted[:, 0] = start
    return shifted


def top_k_by_loops(logits, k, temperature):
    flat = logits.reshape(-1, logits.shape[-1])
    out = torch.zeros_like(flat)
    for row, numbers in enumerate(flat):
        best = sorted(range(len(numbers)), key=lambda i: -numbers[i].item())[:k]
        out[row, best] = (numbers[best] / temperature).softmax(0)
    return out.view(logits.shape)


def top_k_by_scatter(logits, k, temperature):
    values, places = logits.topk(k)
    return torch.zeros_like(logits).scatter(-1, places, F.softmax(values / temperature, -1))


def top_k_by_renormalising(scores, n, t):
    p = (scores / t).softmax(-1)
    p = torch.where(scores < scores.sort(-1, descending=True).values[..., n - 1 : n], 0.0, p)
    return p / p.sum(-1, keepdim=True)


def cache_by_hand(q, k, v, keys, values):
    keys, values = torch.cat((keys, k), -2), torch.cat((values, v), -2)
    weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, keys) * q.shape[-1] ** -0.5, -1)
    return torch.einsum("bhij,bhjd->bhid", weights, values), keys, values


def cache_by_loops(query, key, value, old_keys, old_values):
    all_keys, all_values = (torch.cat(pair, 2) for pair in ((old_keys, key), (old_values, value)))
    out = torch.zeros_like(query)
    for b in range(len(query)):
        for h in range(query.shape[1]):
            scores = all_keys[b, h] @ query[b, h, 0] / math.sqrt(query.shape[-1])
            out[b, h, 0] = scores.softmax(0) @ all_values[b, h]
    return [out, all_keys, all_values]


def cache_by_whole_sequence(q, k, v, keys, values):
    keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
    queries = torch.zeros_like(keys)
    queries[:, :, -1:] = q
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)[:, :, -1:], keys, values


def rotary_by_matrices(x, first):
    length, width = x.shape[-2:]
    out = torch.empty_like(x)
    for t in range(length):
        for i in range(width // 2):
            a = torch.tensor((first + t) / 10000 ** (2 * i / width))
            turn = torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])
            out[..., t, 2 * i : 2 * i + 2] = x[..., t, 2 * i : 2 * i + 2] @ turn.T
    return out


def rotary_by_complex_numbers(x, first):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    frequency = 1e4 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = torch.outer(torch.arange(first, first + x.shape[-2]), frequency)
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def rotary_by_swapping(x, first):
    swapped = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape)
    frequency = (1e4 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])).repeat_interleave(2)
    angle = (torch.arange(x.shape[-2]) + first).unsqueeze(-1) * frequency
    return x * angle.cos() + swapped * angle.sin()


def linear_by_loops(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    numerator = sum(k[..., j, :, None] * v[..., j, None, :] for j in range(k.shape[-2]))
    denominator = sum(k[..., j, :] for j in range(k.shape[-2]))
    return torch.stack(
        [
            (q[..., i, None, :] @ numerator)[..., 0, :] / (q[..., i, :] * denominator).sum(-1, keepdim=True)
            for i in range(q.shape[-2])
        ],
        dim=-2,
    )


def linear_by_einsum(q, k, v):
    q, k = 1 + F.elu(q), 1 + F.elu(k)
    return torch.einsum("...td,...sd,...se->...te", q, k, v) / torch.einsum("...td,...sd->...t", q, k)[..., None]


def linear_with_a_column_of_ones(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.exp()) for x in (q, k))
    both = q @ (k.mT @ torch.cat([v, torch.ones_like(v[..., :1])], -1))
    return both[..., :-1] / both[..., -1:]


def window_by_loops(n, r):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, max(0, i - r) : i + r + 1] = True
    return mask


RIGHT = {
    "shifted_target": [
        shift_by_assignment,
        lambda y, s: torch.cat([torch.full((len(y), 1), s), y[:, :-1]], dim=1),
        lambda target, start: [[start, *row[:-1]] for row in target.tolist()],
    ],
    "top_k_probabilities": [top_k_by_loops, top_k_by_scatter, top_k_by_renormalising],
    "cached_attention": [cache_by_hand, cache_by_loops, cache_by_whole_sequence],
    "rotary": [rotary_by_matrices, rotary_by_complex_numbers, rotary_by_swapping],
    "linear_attention": [linear_by_loops, linear_by_einsum, linear_with_a_column_of_ones],
    "window_mask": [
        window_by_loops,
        lambda n, r: torch.ones(n, n).tril(r).triu(-r).bool(),
        lambda n, r: np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= r,
    ],
}

UNKNOWN = {
    "shifted_target": [
        lambda y, s: torch.full_like(y, s),
        lambda y, s: shift_by_assignment(shift_by_assignment(y, s), s),
        lambda y, s: shift_by_assignment(y, 0),
        lambda y, s: y.flip(-1),
    ],
    "top_k_probabilities": [
        lambda x, k, t: x.topk(k).values.softmax(-1),
        lambda x, k, t: F.one_hot(x.argmax(-1), x.shape[-1]),
        lambda x, k, t: (x / t).softmax(-1) ** k,
        lambda x, k, t: top_k_by_scatter(x * t, max(1, k - 1), 1.0),
    ],
    "cached_attention": [
        lambda q, k, v, keys, values: cache_by_hand(q, k, v, keys, values)[0],
        lambda q, k, v, keys, values: cache_by_hand(k, q, v, keys, values),
        lambda q, k, v, keys, values: cache_by_hand(q, v, k, keys, values),
        lambda q, k, v, keys, values: cache_by_hand(q, k, v, keys.flip(2), values),
    ],
    "rotary": [
        lambda x, first: rotary_by_swapping(x, first + 1),
        lambda x, first: rotary_by_swapping(x.flip(-1), first),
        lambda x, first: x,
        lambda x, first: 2 * rotary_by_swapping(x, first),
        lambda x, first: x.cos() + x.sin(),
    ],
    "linear_attention": [
        lambda q, k, v: linear_by_einsum(q / math.sqrt(q.shape[-1]), k / math.sqrt(q.shape[-1]), v),
        lambda q, k, v: q.softmax(-1) @ (k.softmax(-2).mT @ v),
        lambda q, k, v: linear_by_einsum(k, q, v) if q.shape == k.shape else q,
        lambda q, k, v: v.mean(-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1]),
    ],
    "window_mask": [
        lambda n, r: torch.ones(n, n, dtype=torch.bool),
        lambda n, r: torch.eye(n, dtype=torch.bool),
        lambda n, r: window_by_loops(n, r + 2),
        lambda n, r: window_by_loops(n, r).flip(0),
    ],
}

NUMBERS = {"cache_memory": ([384, 2 * 24 * 16 * 64 * 4096 * 2 / 1024**2, np.float32(384.0)], [100, 1000, -384, 12])}
CHOICES = {"weight_and_worth": "c"}
