"""Records and tensors, which run eagerly and hold no derivative rule; networks and optimisers on them and on arrays."""
