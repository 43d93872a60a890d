"""Remote observers at work: the observer itself, and what hub, server and coordinator do for it at home."""
