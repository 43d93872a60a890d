"""Storage of alerts: new pages, the alerts that they match, and webhook deliveries."""
