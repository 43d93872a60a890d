"""Storage of remote observers: their names and hosts, errands and outcomes at home, and the spool of an observer."""
