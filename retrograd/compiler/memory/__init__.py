"""Plans for loops and gradients that have a budget of bytes."""
