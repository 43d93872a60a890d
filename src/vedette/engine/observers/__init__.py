"""Remote observers: the messages between observer and home, and the observer's decisions. Does not need numpy."""
