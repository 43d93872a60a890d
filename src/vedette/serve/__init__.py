"""What is shown? The order of results, the reasons for it, and what is folded or held back."""
