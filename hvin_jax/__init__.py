"""Highway value iteration networks in JAX and Flax."""
