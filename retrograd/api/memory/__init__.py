"""Memory as users tune it: plans and budgets of loops, regions and gradients, and reports of what they cost."""
