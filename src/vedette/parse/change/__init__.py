"""Detect changes of a page: its blocks by place, and the comparison of two versions."""
