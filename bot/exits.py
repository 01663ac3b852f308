"""Exit statuses of the command line (surfaces.md, section 2)."""

FINE = 0
OTHERWISE = 1
"""The run ended otherwise than done."""
REFUSED = 2
"""Refused, or bad usage."""
SURROUNDINGS = 3
"""The environment is at fault."""
