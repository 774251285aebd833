"""Runs and audits in the browser: a service that searches and shows pairs, and its page. Needs the extra `serve`."""
