"""Which results deserve a chance? Policies that learn what people like without shutting out what nobody has seen.

One policy a file, each a ``decide.Choice`` over ``candidates.Candidates``, and each with ``plan``: the way in which it
deals lists (``dealing``), from which one list is dealt to a person, or a place of many lists asked for at once.
"""
