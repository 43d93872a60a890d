"""The pages that everybody sees, and the recording of what was searched and clicked."""
