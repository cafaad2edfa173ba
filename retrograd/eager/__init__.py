"""Records and tensors, which run eagerly and hold no derivative rule; networks and optimisers for them and arrays."""
