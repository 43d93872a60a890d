"""The endpoint of remote observers: signed reports in, signed orders out."""
