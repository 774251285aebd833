"""The endpoints of the service, one file a subject; each gives a router for what the service holds."""
