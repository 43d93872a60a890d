"""Authentication and access: keys, tokens, sign-in, rate limits."""
