"""A chat on Telegram or LINE as a simple page that looks like it, for the guide's pictures. What the bot sent is drawn as
it was sent; nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tests.doubles import line, telegram


@dataclass(frozen=True, slots=True)
class Said:
    """What the person wrote."""

    text: str


def telegram_page(title: str, shown: Sequence[telegram.Shown | Said]) -> str:
    """A private chat with the bot, as on a telephone."""
    bubbles = "".join(
        f'<div class="mine">{escape(one.text)}</div>' if isinstance(one, Said) else _telegram(one) for one in shown
    )
    return _page("telegram", title, bubbles)


def line_page(title: str, shown: Sequence[line.Shown | Said]) -> str:
    """A chat with the account, as on a telephone. Quick replies stand below the last message only, as they do."""
    parts: list[str] = []
    for n, one in enumerate(shown):
        if isinstance(one, Said):
            parts.append(f'<div class="mine">{escape(one.text)}</div>')
        else:
            parts.append(_line(one.payload, last=n == len(shown) - 1))
    return _page("line", title, "".join(parts))


# --- Telegram --------------------------------------------------------------------------------------------------------
def _telegram(one: telegram.Shown) -> str:
    if one.document is not None:
        name, content = one.document
        return f'<div class="theirs"><b>📄 {escape(name)}</b><br><small>{len(content)} bytes</small></div>'
    if one.photo is not None:
        return f'<div class="theirs photo">{escape(one.photo)}</div>'
    rows = "".join('<div class="row">' + "".join(_key(button) for button in row) + "</div>" for row in one.keyboard)
    return f'<div class="theirs">{_marked(one.text, one.entities)}</div>' + (
        f'<div class="keys">{rows}</div>' if rows else ""
    )


def _key(button: dict[str, Any]) -> str:
    return f'<span class="key">{escape(button["text"])}{" ↗" if "url" in button else ""}</span>'


def _marked(text: str, entities: Sequence[dict[str, Any]]) -> str:
    """The text with its formatted places; these do not overlap in what we send."""
    tags = {"bold": "b", "italic": "i", "pre": "pre", "code": "code", "text_link": "u", "blockquote": "q"}
    raw, out, last = text.encode("utf-16-le"), "", 0
    blocks = ("</pre>\n", "</q>\n")  # a block ends its line by itself
    for one in sorted(entities, key=lambda entity: entity["offset"]):
        begin, end = one["offset"], one["offset"] + one["length"]
        tag = tags.get(one["type"], "span")
        out += escape(raw[2 * last : 2 * begin].decode("utf-16-le"))
        out += f"<{tag}>{escape(raw[2 * begin : 2 * end].decode('utf-16-le'))}</{tag}>"
        last = end
    out += escape(raw[2 * last :].decode("utf-16-le"))
    for end in blocks:
        out = out.replace(end, end.rstrip("\n"))
    return out


# --- LINE ------------------------------------------------------------------------------------------------------------
def _line(payload: dict[str, Any], *, last: bool) -> str:
    if payload["type"] == "text":
        drawn = f'<div class="theirs">{escape(payload["text"])}</div>'
    else:
        held = payload["contents"]
        bubbles = held["contents"] if held["type"] == "carousel" else [held]
        drawn = f'<div class="flex">{"".join(_bubble(bubble) for bubble in bubbles)}</div>'
    quick = (payload.get("quickReply") or {}).get("items") or ()
    if quick and last:
        chips = "".join(f'<span class="chip">{escape(item["action"]["label"])}</span>' for item in quick)
        drawn += f'<div class="chips">{chips}</div>'
    return drawn


def _bubble(bubble: dict[str, Any]) -> str:
    parts = "".join(_component(bubble[name]) for name in ("hero", "body", "footer") if name in bubble)
    return f'<div class="bubble">{parts}</div>'


def _component(one: dict[str, Any]) -> str:
    match one["type"]:
        case "box":
            inside = "".join(_component(part) for part in one["contents"])
            return f'<div class="box {escape(one["layout"])}">{inside}</div>'
        case "text":
            return f'<div class="{" ".join(_classes(one))}">{escape(one["text"])}</div>'
        case "button":
            return f'<span class="button {escape(one["style"])}">{escape(one["action"]["label"])}</span>'
        case _:
            return f'<div class="hero">{escape(one.get("url", ""))}</div>'


def _classes(text: dict[str, Any]) -> Iterator[str]:
    yield "text"
    yield from (name for name in ("bold",) if text.get("weight") == name)
    yield str(text.get("size", "md"))
    if "color" in text:
        yield "grey"
    if "flex" in text:
        yield f"flex{text['flex']}"


def _page(platform: str, title: str, inside: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f'<body class="{platform}"><header>{escape(title)}</header><main>{inside}</main></body></html>'
    )


STYLE = """
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.4 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: #111; min-height: 100vh }
header { padding: 12px 16px; font-weight: 600; position: sticky; top: 0 }
main { padding: 14px 10px 20px; display: flex; flex-direction: column; gap: 6px; max-width: 460px }
.theirs, .mine { white-space: pre-wrap; overflow-wrap: anywhere; padding: 8px 12px; max-width: 88% }
.mine { align-self: flex-end }
.telegram { background: #b9d3b4 }
.telegram header { background: #fff; border-bottom: 1px solid #d8d8d8 }
.telegram .theirs { background: #fff; border-radius: 4px 14px 14px 14px; width: 88%; box-shadow: 0 1px 1px #0002 }
.telegram .mine { background: #e3fdd0; border-radius: 14px 14px 4px 14px; box-shadow: 0 1px 1px #0002 }
.telegram pre { margin: 4px 0 0; padding: 7px 9px; background: #eef3f8; border-left: 3px solid #5b9bd1; border-radius: 4px;
  font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap }
.telegram q { display: block; quotes: none; border-left: 3px solid #5b9bd1; padding-left: 8px; background: #eef3f8 }
.telegram u { color: #2678b6; text-decoration: none }
.keys { width: 88%; display: flex; flex-direction: column; gap: 4px; margin-bottom: 6px }
.row { display: flex; gap: 4px }
.key { flex: 1; text-align: center; padding: 8px 4px; border-radius: 8px; background: #4f7a49cc; color: #fff; font-size: 14px;
  overflow: hidden; white-space: nowrap; text-overflow: ellipsis }
.line { background: #8fabd0 }
.line header { background: #8fabd0 }
.line .theirs { background: #fff; border-radius: 16px }
.line .mine { background: #8de055; border-radius: 16px }
.flex { display: flex; gap: 8px; overflow-x: auto; padding-bottom: 4px }
.bubble { background: #fff; border-radius: 14px; width: 300px; flex: none; overflow: hidden }
.box { padding: 0; display: flex; gap: 10px }
.bubble > .box { padding: 16px }
.bubble > .box + .box { padding-top: 0 }
.vertical { flex-direction: column } .horizontal { flex-direction: row }
.horizontal > .button { flex: 1; padding: 9px 2px } .text { white-space: pre-wrap; overflow-wrap: anywhere } .bold { font-weight: 700 } .lg { font-size: 18px } .sm { font-size: 13px }
.grey { color: #767676 } .flex2 { flex: 2 } .flex5 { flex: 5 }
.button { text-align: center; padding: 9px 8px; border-radius: 8px; font-size: 15px }
.primary { background: #06a64b; color: #fff } .secondary { background: #dcdfe5 } .link { color: #3f5d8a }
.hero, .photo { background: #cfd8e6; color: #5a6c86; font-size: 12px; padding: 60px 12px; text-align: center; overflow-wrap: anywhere }
.chips { display: flex; gap: 6px; overflow-x: auto; padding: 6px 0 }
.chip { background: #fff; border-radius: 16px; padding: 6px 14px; font-size: 14px; white-space: nowrap; flex: none }
"""
