"""The endpoint of remote observers: signed reports are exchanged for signed orders."""
