"""Runs the ring on the real web: one worker now; supervisor and keeper join it later."""
