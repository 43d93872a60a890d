"""The public pages, and the recording of searches and clicks on them."""
