"""DT-VIN written plainly in PyTorch, for `benchmarks.dtvin`; run by a Python that has torch.

    python benchmarks/dtvin_torch.py EXCHANGE.npz

Reads parameters and a batch, writes loss and gradients beside them and prints the shortest of some
steps in seconds. Four moves, kernels of 3×3, adaptive highway loss, every optimal action accepted.
"""

import sys
import time
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

NAMES = ("transition", "transition_bias", "reward", "reward_bias")


def loss_of(
    params: dict[str, Any], maze: Any, goal: Any, optimal: Any, spl: Any, *, depth: int, every: int
) -> Any:
    """The loss of a batch of maps `[B, H, W]`."""
    batch, height, width = maze.shape
    observed = torch.stack([maze, goal], 1)
    # Our windows have the channel innermost, those of `unfold` outermost.
    seen = F.unfold(observed, 3, padding=1).reshape(batch, 2, 9, -1)
    seen = seen.transpose(1, 2).reshape(batch, 18, -1)
    weights, bias = params["transition"][..., 0], params["transition_bias"][:, 0]
    logits = torch.einsum("bcn,ck->bkn", seen, weights) + bias[None, :, None]
    kernel = torch.softmax(logits.reshape(batch, 9, 4, -1), 1)
    reward = torch.einsum("bchw,c->bhw", observed, params["reward"][:, 0]) + params["reward_bias"]

    def q_of(value: Any) -> Any:
        future = F.unfold((reward + value)[:, None], 3, padding=1)
        return (kernel * future[:, :, None]).sum(1)  # [B, A, H·W]

    value = torch.zeros_like(maze)
    total: Any = 0.0
    count: Any = 0.0
    sets, lengths = optimal.reshape(batch, 4, -1), spl.reshape(batch, -1)
    for layer in range(1, depth + 1):
        value = q_of(value).max(1).values.reshape(batch, height, width)
        if layer % every == 0:
            log_policy = torch.log_softmax(q_of(value), 1)
            likelihood = torch.logsumexp(log_policy.masked_fill(~sets, -torch.inf), 1)
            reached = lengths <= layer
            total = total - likelihood[reached].sum()
            count = count + reached.sum()
    return total / count


def main() -> None:
    """Measures."""
    path = sys.argv[1]
    arrays = dict(np.load(path))
    depth, every, repeats = (int(arrays.pop(x)) for x in ("depth", "every", "repeats"))
    params = {x: torch.tensor(arrays[x], requires_grad=True) for x in NAMES}
    batch = {x: torch.tensor(arrays[x]) for x in ("maze", "goal", "optimal", "spl")}
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        loss = loss_of(params, **batch, depth=depth, every=every)
        grads = torch.autograd.grad(loss, [params[x] for x in NAMES])
        seconds.append(time.perf_counter() - began)
    outcome = dict(zip(NAMES, grads, strict=True))
    np.savez(path.replace(".npz", "-torch.npz"), loss=loss.detach(), **outcome)
    print(min(seconds))


if __name__ == "__main__":
    main()
