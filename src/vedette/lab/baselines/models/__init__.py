"""Models of change that only the lab compares with."""
