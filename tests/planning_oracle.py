"""Planning in plain numpy, written from the equations: loops over states, float64.

An MDP is known here by its function `q`, which takes a value to all `Q` (one more axis, actions).
`[...]` stands for the shape of a value.
"""

import itertools

import numpy as np

# Tabular MDPs ------------------------------------------------------------------------------------


def random_tabular(rng, states, actions):
    """A random MDP as (transition, reward [S, A, S], discount); some transitions are sure."""
    transition = rng.dirichlet(np.full(states, 0.5), (states, actions))
    sure = rng.random((states, actions)) < 0.3
    transition[sure] = np.eye(states)[rng.integers(0, states, sure.sum())]
    return transition, rng.normal(size=(states, actions, states)), rng.uniform(0.3, 0.97)


def random_policies(rng, *shape):
    """Distributions over the last axis, some of them on one action."""
    policies = rng.dirichlet(np.full(shape[-1], 0.5), shape[:-1])
    sure = rng.random(shape[:-1]) < 0.3
    policies[sure] = np.eye(shape[-1])[rng.integers(0, shape[-1], sure.sum())]
    return policies


def tabular_q(transition, reward, discount):
    """Q(s, a) = Σ_s' T(s' | s, a) [R(s, a, s') + γ V(s')]."""
    states, actions, _ = transition.shape

    def q(value):
        out = np.zeros((states, actions))
        for s, a, t in np.ndindex(transition.shape):
            out[s, a] += transition[s, a, t] * (reward[s, a, t] + discount * value[t])
        return out

    return q


def optimal_value(transition, reward, discount):
    """V* by policy iteration: exact, and no fixed point of any operator under test."""
    states = len(transition)
    expected = (transition * reward).sum(-1)
    policy = np.zeros(states, int)
    while True:
        rows = np.arange(states), policy
        value = np.linalg.solve(np.eye(states) - discount * transition[rows], expected[rows])
        q = expected + discount * transition @ value
        better = np.where(q.max(-1) > q[rows] + 1e-12, q.argmax(-1), policy)
        if (better == policy).all():
            return value
        policy = better


# Operators, gates, blocks ------------------------------------------------------------------------


def best(q):
    """max_a Q, state by state."""
    out = np.zeros(q.shape[:-1])
    for s in np.ndindex(out.shape):
        out[s] = max(q[s])
    return out


def expectation(q, policy):
    """Σ_a π(a | s) Q(s, a), state by state."""
    out = np.zeros(q.shape[:-1])
    for s in np.ndindex(out.shape):
        out[s] = sum(policy[s][a] * q[s][a] for a in range(q.shape[-1]))
    return out


def chosen(q, action):
    """Q(s, action(s)), state by state."""
    out = np.zeros(q.shape[:-1])
    for s in np.ndindex(out.shape):
        out[s] = q[s][action[s]]
    return out


def soft_max(numbers, alpha):
    """Smax^α: numbers weighted by softmax(α · number)."""
    weights = [np.exp(alpha * x - max(alpha * y for y in numbers)) for x in numbers]
    return sum(w * x for w, x in zip(weights, numbers, strict=True)) / sum(weights)


def gate(values, alpha):
    """The soft maximum over a list of values, state by state."""
    out = np.zeros(values[0].shape)
    for s in np.ndindex(out.shape):
        out[s] = soft_max([value[s] for value in values], alpha)
    return out


def filtered(values, floor):
    """The filter gate: max{value, floor}, state by state."""
    out = [np.zeros(floor.shape) for _ in values]
    for new, old in zip(out, values, strict=True):
        for s in np.ndindex(floor.shape):
            new[s] = old[s] if old[s] > floor[s] else floor[s]
    return out


def highway_operator(q, value, policies, depths, alpha, alpha_tilde, filter_gate=True):
    """G V = smax_π smax_n max{ (B^π)^(n-1) B V, B V }."""
    first = best(q(value))
    by_policy = []
    for policy in policies:
        by_depth = []
        for depth in depths:
            ahead = first
            for _ in range(depth - 1):
                ahead = expectation(q(ahead), policy)
            by_depth.append(ahead)
        by_policy.append(gate(filtered(by_depth, first) if filter_gate else by_depth, alpha))
    return gate(by_policy, alpha_tilde)


def value_iteration(q, value, times):
    """V⁽ⁿ⁺¹⁾ = max_a Q(V⁽ⁿ⁾), `[times, ...]`."""
    values = []
    for _ in range(times):
        value = best(q(value))
        values.append(value)
    return np.stack(values)


def follow(q, value, actions):
    """A chain of VE modules that take the given actions `[L, ...]`: values `[L, ...]`."""
    values = []
    for action in actions:
        value = chosen(q(value), action)
        values.append(value)
    return np.stack(values)


def highway_block(
    q,
    value,
    explore,
    *,
    block_depth,
    num_policies,
    alpha,
    alpha_tilde,
    filter_gate=True,
    weigh_depths=None,
    weigh_chains=None,
):
    """One highway block.

    `explore(q_values, chain, layer) -> value` is what a VE module makes of its Q. `weigh_depths`
    and `weigh_chains` make the weights of learnable gates from `[D, ...]`.
    """
    first = best(q(value))
    outputs = []
    for chain in range(num_policies):
        depths = [first]
        for layer in range(block_depth - 1):
            depths.append(explore(q(depths[-1]), chain, layer))
        if filter_gate:
            depths = filtered(depths, first)
        outputs.append(_aggregate(depths, alpha, weigh_depths))
    return _aggregate(outputs, alpha_tilde, weigh_chains)


def _aggregate(values, alpha, weigh):
    if weigh is None:
        return gate(values, alpha)
    weights = weigh(np.stack(values))
    return sum(w * v for w, v in zip(weights, values, strict=True))


def highway_vi(
    q,
    value,
    *,
    num_blocks,
    block_depth,
    num_policies=1,
    alpha=1.0,
    alpha_tilde=1.0,
    filter_gate=True,
    actions=None,
    policy=None,
    depth_gate=None,
    policy_gate=None,
):
    """Highway VI, the value after each block `[N_B, ...]`.

    VE modules take `actions` `[N_B, 1 + N_p (N_b - 1), ...]` (the first of each block, that of the
    VI module, is not read), or mix by `policy(q, block, chain, layer)`, or else are greedy.
    Gates are `depth_gate(values, block)`.
    """
    alpha = np.broadcast_to(alpha, (num_blocks,))
    alpha_tilde = np.broadcast_to(alpha_tilde, (num_blocks,))
    values = []
    for block in range(num_blocks):

        def explore(q_values, chain, layer, block=block):
            if policy is not None:
                return expectation(q_values, policy(q_values, block, chain, layer))
            if actions is not None:
                return chosen(q_values, actions[block][1 + chain * (block_depth - 1) + layer])
            return best(q_values)

        value = highway_block(
            q,
            value,
            explore,
            block_depth=block_depth,
            num_policies=num_policies,
            alpha=alpha[block],
            alpha_tilde=alpha_tilde[block],
            filter_gate=filter_gate,
            weigh_depths=depth_gate and (lambda v, block=block: depth_gate(v, block)),
            weigh_chains=policy_gate and (lambda v, block=block: policy_gate(v, block)),
        )
        values.append(value)
    return np.stack(values)


# The latent MDP ----------------------------------------------------------------------------------


def correlate(maps, kernel):
    """`[B, H, W, I]` and `[F, F, I, ...]` to `[B, H, W, ...]`: sums over zero-padded patches."""
    batch, height, width, channels = maps.shape
    size = len(kernel)
    out = np.zeros((batch, height, width, *kernel.shape[3:]))
    for b, y, x in np.ndindex(batch, height, width):
        for i, j in itertools.product(range(size), repeat=2):
            row, column = y + i - size // 2, x + j - size // 2
            if 0 <= row < height and 0 <= column < width:
                for p in range(channels):
                    out[b, y, x] += kernel[i, j, p] * maps[b, row, column, p]
    return out


def conv_q(q_reward, kernel):
    """Q[b, y, x, o, a] = q_reward + Σ over the patch and the orientations p of kernel · V."""
    return lambda value: q_reward + correlate(value, kernel)


# The models, given their parameters --------------------------------------------------------------


def observe(maze, goal):
    """Map channel, then goal channels."""
    return np.concatenate([np.asarray(maze, float)[..., None], np.asarray(goal, float)], axis=-1)


def latent_mdp(params, observed):
    """The reward part of Q and the value kernel of VIN, highway network and highway VIN."""
    channels = observed.shape[-1]
    hidden = correlate(observed, params["hidden_kernel"].reshape(3, 3, channels, -1))
    reward = (hidden + params["hidden_bias"]) @ params["reward"]
    kernel = params.get("kernel")
    reward_kernel = params["reward_kernel"] if kernel is None else kernel
    value_kernel = params["value_kernel"] if kernel is None else kernel
    return correlate(reward, reward_kernel), value_kernel


def latent_logits(params, q_values):
    """The dense layer over all O·A channels of the last Q."""
    batch, height, width, orientations, _ = q_values.shape
    logits = q_values.reshape(batch, height, width, -1) @ params["policy"]
    return logits.reshape(batch, height, width, orientations, -1)


def vin(params, maze, goal, depth):
    """Logits, values of all layers."""
    q_reward, kernel = latent_mdp(params, observe(maze, goal))
    q = conv_q(q_reward, kernel)
    values = value_iteration(q, np.zeros(q_reward.shape[:-1]), depth)
    return latent_logits(params, q(values[-1])), values


def highway_model(params, maze, goal, **settings):
    """Highway network (greedy, no filter gate) and highway VIN: logits, values of all blocks.

    With the learnable policy π = softmax(τ Q + U φ) and gate A = softmax(α V' + U φ) if their
    parameters are there.
    """
    observed = observe(maze, goal)
    q_reward, kernel = latent_mdp(params, observed)
    q = conv_q(q_reward, kernel)
    if "policy_observation" in params:
        bias = np.einsum("bhwc,kcoa->kbhwoa", observed, params["policy_observation"])
        temperature = params["policy_temperature"]
        settings["policy"] = lambda q_values, block, chain, layer: softmax(
            temperature[block, chain, layer] * q_values + bias[chain], axis=-1
        )
    if "gate_observation" in params:
        shift = np.einsum("bhwc,ndco->ndbhwo", observed, params["gate_observation"])
        settings["depth_gate"] = lambda values, block: softmax(
            params["alpha"][block] * values + shift[block], axis=0
        )
    temperatures = {k: params[k] for k in ("alpha", "alpha_tilde") if k in params}
    values = highway_vi(q, np.zeros(q_reward.shape[:-1]), **(temperatures | settings))
    return latent_logits(params, q(values[-1])), values


def softmax(x, axis):
    """The textbook formula."""
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def sigmoid(x):
    """The textbook formula."""
    return 1 / (1 + np.exp(-x))


def gppn(params, maze, goal, depth, size):
    """3×3 convolutions to h₀ and c₀; then `depth - 1` LSTM steps on a gathering convolution."""

    def conv(name, x):
        return correlate(x, params[name]["kernel"]) + params[name]["bias"]

    features = conv("features", observe(maze, goal))
    hidden, cell = conv("hidden", features), conv("cell", features)
    units = hidden.shape[-1]
    gather = params["gather_kernel"].reshape(units, size, size).transpose(1, 2, 0)
    for _ in range(depth - 1):
        gathered = correlate(hidden, gather) + params["gather_bias"]
        gates = (
            gathered[..., None] * params["input_kernel"]
            + params["input_bias"]
            + hidden @ params["recurrent_kernel"]
            + params["recurrent_bias"]
        )
        i, f, g, o = (gates[..., k * units : (k + 1) * units] for k in range(4))
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
    batch, height, width, orientations = goal.shape
    return (hidden @ params["policy"]).reshape(batch, height, width, orientations, -1)
