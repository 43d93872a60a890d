"""Which sponsored results are shown beside the organic ones, what a click costs, and how no budget is ever exceeded?

An *ad* is one advertiser's offer for one phrase: a bid for a click. ``matching`` says which ads a query may show,
``ad_book`` what is known of each, ``policies`` which are shown, ``auction`` what a click on each costs, ``ledger`` what
was owed and paid. Nothing here touches the organic order.
"""
