"""Remote observers at runtime: the observer itself, and the parts of hub, server and coordinator at home."""
