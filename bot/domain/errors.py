"""Every exception of ours, in one tree. Expected outcomes (a late tap, a refused send) are values, not exceptions.

WaitonError
├── Misconfigured     settings or environment; the message names the setting to change
├── OpError           an op cannot go on: becomes the op's recorded error, in the script's words
└── Bug               a broken invariant of ours
"""


class WaitonError(Exception):
    """Root of the tree."""


class Misconfigured(WaitonError):
    """The operator's settings or surroundings are at fault; the message says what to change."""


class OpError(WaitonError):
    """What ends one op: the message is shown to people as that op's error."""


class Bug(WaitonError):
    """An invariant of ours does not hold."""
