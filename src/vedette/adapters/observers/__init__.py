"""Storage of remote observers: who they are, errands and their outcomes at home, and the spool at an observer."""
