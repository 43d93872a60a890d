"""The BPOL ad policy, which only the lab runs, and the ad statistics of its markets."""
