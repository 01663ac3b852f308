"""What keeps Slack from working: each token, each right, by name, and what to do."""

from __future__ import annotations

from channels.base import Fault, Later, Refused
from channels.slack.calls import Calls

SCOPES = {
    "app_mentions:read": "hear mentions",
    "channels:history": "read what is written in public channels it is in",
    "chat:write": "write",
    "chat:write.public": "write in public channels it is not in",
    "commands": "offer /waiton and shortcuts",
    "files:read": "read uploaded scripts",
    "files:write": "send files",
    "groups:history": "read what is written in private channels it is in",
    "im:history": "read direct messages",
    "im:write": "begin direct messages",
    "mpim:history": "read what is written in group messages it is in",
    "reactions:read": "see reactions",
    "usergroups:read": "take roles from user groups",
    "users:read": "tell members from guests",
    "users:read.email": "find people by their address",
}
"""What the bot's token may do; the manifest asks for the same."""

BOT = "SLACK_BOT_TOKEN"
APP = "SLACK_APP_TOKEN"
SIGNING = "SLACK_SIGNING_SECRET"
_BOT_MEND = f"copy the Bot User OAuth Token (xoxb-…, OAuth & Permissions) into {BOT}"
_APP_MEND = f"copy an app-level token with connections:write (xapp-…, Basic Information) into {APP}"


async def check(calls: Calls, *, bot_token: str, app_token: str, signing_secret: str) -> list[Fault]:
    """Every fault of the settings, then what Slack itself says of the tokens."""
    found = [
        *_shape(BOT, bot_token, "xoxb-", "xapp-", "an app-level token", _BOT_MEND),
        *_shape(APP, app_token, "xapp-", "xoxb-", "a bot token", _APP_MEND),
    ]
    if not bot_token:
        found.append(Fault(what=f"{BOT} is not set", mend=_BOT_MEND))
    if not app_token and not signing_secret:
        mend = f"set {APP} (Socket Mode) or {SIGNING} (HTTP, with a public address)"
        found.append(Fault(what=f"Slack has no way to bring anything: neither {APP} nor {SIGNING} is set", mend=mend))
    if bot_token.startswith("xoxb-"):
        found += await _bot(calls)
    if app_token.startswith("xapp-"):
        found += await _app(calls, app_token)
    return found


def _shape(name: str, token: str, right: str, wrong: str, called: str, mend: str) -> list[Fault]:
    if not token or token.startswith(right):
        return []
    if token.startswith(wrong):
        return [Fault(what=f"{name} holds {called} ({wrong}…): the two were swapped", mend=mend)]
    return [Fault(what=f"{name} is no token that begins with {right}", mend=mend)]


async def _bot(calls: Calls) -> list[Fault]:
    got = await calls.call("auth.test")
    if isinstance(got, Later):
        return [Fault(what=f"Slack does not answer: {got.why}", mend="look whether this machine reaches Slack")]
    if isinstance(got, Refused):
        return [Fault(what=f"{BOT}: {got.why}", mend=f"install the app once more, then {_BOT_MEND}")]
    held = {scope.strip() for scope in got["headers"].get("x-oauth-scopes", "").split(",")}
    return [
        Fault(
            what=f"the Slack app lacks the scope `{scope}`: it cannot {use}",
            mend="add it under OAuth & Permissions (or paste deploy/slack-manifest.yaml again), then reinstall the app",
        )
        for scope, use in SCOPES.items()
        if scope not in held
    ]


async def _app(calls: Calls, app_token: str) -> list[Fault]:
    got = await calls.call("apps.connections.open", app_token=app_token)
    if isinstance(got, Refused):
        return [Fault(what=f"{APP}: {got.why}", mend=_APP_MEND)]
    if isinstance(got, Later):
        return [Fault(what=f"Slack opens no socket: {got.why}", mend="look whether this machine reaches Slack")]
    return []
