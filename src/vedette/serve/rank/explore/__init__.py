"""Exploration policies: learn what people like without excluding results that no one has seen.

One policy per file, each a ``policy.Choice`` over ``candidates.Candidates``, and each with ``plan``: its distribution
over lists (``randomized_lists``), from which one list is drawn for a person, or one position of many lists at once.
"""
