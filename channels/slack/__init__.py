"""Slack as a channel. `channel.py` is the class; everything that needs the SDK is imported with it, and only then."""
