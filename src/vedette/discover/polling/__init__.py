"""The model behind polling: links arriving on discovery sources, overlap, and the worth of a poll."""
