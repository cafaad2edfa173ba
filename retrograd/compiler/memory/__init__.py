"""Memory plans for loops and gradients with a budget of bytes."""
