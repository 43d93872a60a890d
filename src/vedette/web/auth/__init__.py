"""Authentication and access control: keys, tokens, sign-in, rate limits."""
