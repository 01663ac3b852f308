"""What the room shows at most, and takes at most. Own limits, not a platform's."""

BODY_BYTES = 256 * 1024
"""Of one post: a script, an event, a form."""
BUTTONS = 12
"""Choices shown as buttons; more are a list to pick from."""
TEXT_SHOWN = 20_000
"""Characters of one message; the rest is cut with a line that says so."""
RUNS_SHOWN = 20
"""Runs of a job on its page, the newest; older ones are a page further back."""
ITEMS_SHOWN = 12
"""Items of one map on the rail; the record has all."""
VALUE_SHOWN = 4_000
"""Characters of a value on a page."""
UPLOAD_BYTES = 10 * 1024 * 1024
"""Of one uploaded file: what `read` takes."""
NAME_SHOWN = 100
"""Characters of an uploaded file's name."""
