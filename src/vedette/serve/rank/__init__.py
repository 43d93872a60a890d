"""Which results first? Weights over features, and what changes an order afterwards."""
