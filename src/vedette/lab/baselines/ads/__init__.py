"""Ad policies from the literature that the lab compares with, and their statistics."""
