"""A highway VIN written plainly in PyTorch, for `benchmarks.peer`; run by a Python that has torch.

    python benchmarks/highway_torch.py EXCHANGE.npz

Reads parameters, a batch and the actions of VE modules, makes a step (loss and gradients) for each
line of stdin and answers with a line. What the first step made is written beside EXCHANGE.npz.
Every layer convolves to all latent actions; the rest is autograd.
"""

import sys
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

NAMES = (
    "hidden_kernel",
    "hidden_bias",
    "reward",
    "reward_kernel",
    "value_kernel",
    "alpha",
    "policy",
)


def plan(params: dict[str, Any], maze: Any, goal: Any, actions: Any) -> tuple[Any, Any]:
    """The last value and the logits of a batch.

    Args:
      params: as in `hvin_jax.models.HighwayVIN`.
      maze: `[B, H, W]`.
      goal: `[B, O, H, W]`.
      actions: `[N_B, N_b - 1, B, O, H, W]`, what VE modules take.

    Returns:
      `[B, O, H, W]` and `[B, O·num_actions, H, W]`.
    """
    observed = torch.cat([maze[:, None], goal], 1)
    hidden_kernel = params["hidden_kernel"].reshape(3, 3, observed.shape[1], -1)
    hidden = F.conv2d(observed, hidden_kernel.permute(3, 2, 0, 1), params["hidden_bias"], padding=1)
    reward = F.conv2d(hidden, params["reward"].T[..., None, None])
    kernel = torch.cat([params["reward_kernel"], params["value_kernel"]], 2)
    kernel = kernel.flatten(3).permute(3, 2, 0, 1)  # [O·A, 2·O, F, F]

    def q_of(value: Any) -> Any:
        q = F.conv2d(torch.cat([reward, value], 1), kernel, padding="same")
        return q.unflatten(1, (goal.shape[1], -1))  # [B, O, A, H, W]

    value = torch.zeros_like(reward)
    b, o, y, x = torch.meshgrid(*map(torch.arange, value.shape), indexing="ij")
    for alpha, block in zip(params["alpha"], actions, strict=True):
        value = first = q_of(value).max(2).values
        values = [first]
        for action in block:
            # Not by `gather`, which keeps all Q of every layer for its gradient.
            value = q_of(value)[b, o, action, y, x]
            values.append(value)
        filtered = torch.maximum(torch.stack(values), first)
        value = (torch.softmax(alpha * filtered, 0) * filtered).sum(0)
    return value, F.conv2d(q_of(value).flatten(1, 2), params["policy"].T[..., None, None])


def step(params: dict[str, Any], batch: dict[str, Any], label: Any) -> dict[str, Any]:
    """Value `[B, H, W, O]`, logits `[B, H, W, O, num_actions]`, loss and gradients by name."""
    value, logits = plan(params, **batch)
    logits = logits.unflatten(1, (value.shape[1], -1)).permute(0, 3, 4, 1, 2)
    loss = F.cross_entropy(logits.flatten(0, 3), label.flatten())
    grads = torch.autograd.grad(loss, [params[x] for x in NAMES])
    outputs = {"value": value.permute(0, 2, 3, 1), "logits": logits, "loss": loss}
    return {x: y.detach() for x, y in outputs.items()} | dict(zip(NAMES, grads, strict=True))


def main() -> None:
    """Answers line by line."""
    path = sys.argv[1]
    arrays = dict(np.load(path))
    params = {x: torch.tensor(arrays[x], requires_grad=True) for x in NAMES}
    batch = {x: torch.tensor(arrays[x]) for x in ("maze", "goal", "actions")}
    label = torch.tensor(arrays["label"])
    for count, _ in enumerate(sys.stdin):
        outcome = step(params, batch, label)
        if count == 0:
            np.savez(path.replace(".npz", "-torch.npz"), **outcome)
        print(flush=True)


if __name__ == "__main__":
    main()
