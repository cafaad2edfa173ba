"""The benchmark: value and gradient by retrograd, jax, torch, autograd and NumPy written by hand."""
