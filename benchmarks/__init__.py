"""How fast the course's code is: each number a ratio against a floor or a peer, measured side by side in one run."""
