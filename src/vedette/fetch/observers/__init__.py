"""Remote observers: what observing from near a site costs, who observes which host, and how bodies travel home."""
