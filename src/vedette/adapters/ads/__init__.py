"""Storage of the ad system: advertisers, campaigns and ads, and the ledger of impressions and charges."""
