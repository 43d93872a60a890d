"""Ads: which sponsored results to show, the cost of a click, and budgets.

An *ad* is one advertiser's offer for one phrase: a bid for a click. ``matching`` finds the ads that a query may show,
``catalog`` has the data of each, ``policies`` choose which are shown, ``auction`` prices a click on each, ``ledger``
records what was owed and paid. Nothing here affects the organic order.
"""
