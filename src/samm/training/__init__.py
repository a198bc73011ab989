"""Training on states that the network produced itself."""
