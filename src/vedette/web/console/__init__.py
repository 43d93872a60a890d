"""The operator's console: what happens, why, and how to change it."""
