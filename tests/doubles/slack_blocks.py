"""Slack's blocks as a simple page that looks like Slack's message: for looking at what we send, and for the guide.

Not Slack's renderer: enough of it to see what stands where. No script; everything that is shown is escaped here."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

Block = Mapping[str, Any]

STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1d1c1d; --soft: #616061; --line: #ddd; --box: #f8f8f8;
  --link: #1264a3; --go: #007a5a; --bad: #e01e5a; }
@media (prefers-color-scheme: dark) { :root { --back: #1a1d21; --ink: #d1d2d3; --soft: #9a9b9d; --line: #565856;
  --box: #222529; --link: #1d9bd1; --go: #148567; --bad: #e8516f; } }
* { box-sizing: border-box }
body { margin: 0; padding: 16px; background: var(--back); color: var(--ink);
  font: 15px/1.46 Lato, "Noto Sans", "DejaVu Sans", sans-serif; max-width: 720px; overflow-wrap: anywhere }
.message { display: grid; grid-template-columns: 36px minmax(0, 1fr); gap: 0 8px; margin-bottom: 18px }
.face { width: 36px; height: 36px; border-radius: 8px; background: #2f5d4a; color: #fff; display: grid;
  place-items: center; font-weight: 700 }
.who { font-weight: 900 } .app { font-size: 10px; font-weight: 700; color: var(--soft); background: var(--box);
  padding: 1px 3px; border-radius: 2px; margin: 0 4px } .at { color: var(--soft); font-size: 12px }
.only { color: var(--soft); font-size: 13px }
.section { margin: 4px 0; white-space: pre-wrap } .context { color: var(--soft); font-size: 13px; margin: 6px 0;
  white-space: pre-wrap }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 4px; padding: 8px; margin: 4px 0;
  font: 12px/1.5 Menlo, "DejaVu Sans Mono", monospace; white-space: pre-wrap }
a { color: var(--link); text-decoration: none }
blockquote { margin: 4px 0; padding-left: 12px; border-left: 4px solid var(--line); white-space: pre-wrap }
.actions { display: flex; flex-wrap: wrap; gap: 8px; margin: 8px 0 }
.button { border: 1px solid var(--line); border-radius: 4px; padding: 4px 12px; font-weight: 700; font-size: 13px;
  background: var(--back) } .primary { background: var(--go); border-color: var(--go); color: #fff }
.danger { background: var(--bad); border-color: var(--bad); color: #fff }
.select { border: 1px solid var(--line); border-radius: 4px; padding: 4px 12px; font-size: 13px; color: var(--soft) }
.header { font-weight: 900; font-size: 18px; margin: 12px 0 4px } hr { border: 0; border-top: 1px solid var(--line) }
.image { border: 1px solid var(--line); border-radius: 8px; color: var(--soft); padding: 24px; margin: 4px 0 }
.modal { border: 1px solid var(--line); border-radius: 8px; padding: 16px; max-width: 520px }
.title { font-weight: 900; font-size: 20px; margin-bottom: 12px } .label { font-weight: 700; margin-top: 12px }
.field { border: 1px solid var(--line); border-radius: 4px; padding: 8px; min-height: 38px; white-space: pre-wrap;
  font: 13px/1.5 Menlo, "DejaVu Sans Mono", monospace } .tall { min-height: 120px }
.foot { display: flex; justify-content: flex-end; gap: 8px; margin-top: 16px }
"""
_TOKEN = re.compile(
    r"<!date\^(?P<ts>\d+)\^(?P<shown>[^|>]*)\|(?P<fallback>[^>]*)>|<@(?P<user>[A-Z0-9]+)>"
    r"|<(?P<url>https?://[^|>]+)(?:\|(?P<label>[^>]*))?>"
)
_MARKS = ((r"\*([^*\n]+)\*", "b"), (r"(?<!\w)_([^_\n]+)_(?!\w)", "i"), (r"`([^`\n]+)`", "code"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Whoever looks. `names`: a user's id and name; instants are shown in their `zone`, as Slack does."""

    names: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo = UTC


def page(messages: Sequence[Block], *, reader: Reader = Reader(), title: str = "Slack") -> str:
    """Messages as a page, each with its blocks (or its text). A message with `user` and no `bot_id` is somebody's own;
    one with `only` is seen by that person alone."""
    body = "\n".join(_message(one, reader) for one in messages)
    return f'<!doctype html><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>{body}'


def modal(view: Block, *, reader: Reader = Reader()) -> str:
    """A form as a page."""
    blocks = "".join(_block(block, reader) for block in view["blocks"])
    foot = f'<span class="button">{_plain(view["close"])}</span>'
    if "submit" in view:
        foot += f'<span class="button primary">{_plain(view["submit"])}</span>'
    body = f'<div class="title">{_plain(view["title"])}</div>{blocks}<div class="foot">{foot}</div>'
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><div class="modal">{body}</div>'


def _message(one: Block, reader: Reader) -> str:
    who = "Waiton" if one.get("bot_id") or "user" not in one else reader.names.get(one["user"], one["user"])
    app = '<span class="app">APP</span>' if one.get("bot_id") or "user" not in one else ""
    at = datetime.fromtimestamp(float(one["ts"]), reader.zone).strftime("%H:%M") if one.get("ts") else ""
    only = '<div class="only">Only visible to you</div>' if one.get("only") else ""
    blocks = one.get("blocks") or []
    shown = "".join(_block(block, reader) for block in blocks)
    shown = shown or f'<div class="section">{_markup(one.get("text", ""), reader)}</div>'
    files = "".join(f'<div class="image">{html.escape(f["name"])}</div>' for f in one.get("files") or ())
    head = f'{only}<span class="who">{html.escape(who)}</span>{app} <span class="at">{at}</span>'
    return f'<div class="message"><div class="face">{html.escape(who[:1])}</div><div>{head}{shown}{files}</div></div>'


def _block(block: Block, reader: Reader) -> str:
    match block["type"]:
        case "section":
            return f'<div class="section">{_markup(block["text"]["text"], reader)}</div>'
        case "header":
            return f'<div class="header">{_plain(block["text"])}</div>'
        case "context":
            shown = " ".join(_markup(element["text"], reader) for element in block["elements"])
            return f'<div class="context">{shown}</div>'
        case "rich_text":
            return "".join(_rich(part, reader) for part in block["elements"])
        case "actions":
            return f'<div class="actions">{"".join(map(_element, block["elements"]))}</div>'
        case "image":
            return f'<div class="image">{html.escape(block["alt_text"])}</div>'
        case "input":
            return _input(block)
        case _:
            return "<hr>"


def _rich(part: Block, reader: Reader) -> str:
    if part["type"] == "rich_text_list":
        pad = "&nbsp;" * 4 * part.get("indent", 0)
        items = (_runs(item["elements"], reader) for item in part["elements"])
        return "".join(f'<div class="section">{pad}• {item}</div>' for item in items)
    words = _runs(part["elements"], reader)
    tag = {"rich_text_preformatted": "pre", "rich_text_quote": "blockquote"}.get(part["type"])
    return f"<{tag}>{words}</{tag}>" if tag else f'<div class="section">{words}</div>'


def _runs(elements: Sequence[Block], reader: Reader) -> str:
    shown = ""
    for one in elements:
        match one["type"]:
            case "user":
                shown += f"<a>@{html.escape(reader.names.get(one['user_id'], one['user_id']))}</a>"
            case "link":
                shown += f"<a>{html.escape(one.get('text') or one['url'])}</a>"
            case "emoji":
                shown += "".join(chr(int(code, 16)) for code in one["unicode"].split("-"))
            case _:
                shown += html.escape(one.get("text", ""))
    return shown


def _element(one: Block) -> str:
    if one["type"] == "button":
        style = f" {one['style']}" if "style" in one else ""
        return f'<span class="button{style}">{_plain(one["text"])}</span>'
    if one["type"] == "overflow":
        return f'<span class="button" title="{html.escape(" · ".join(o["text"]["text"] for o in one["options"]))}">⋯</span>'
    return f'<span class="select">{_plain(one["placeholder"])} ▾</span>'


def _input(block: Block) -> str:
    element = block["element"]
    first = element.get("initial_value") or element.get("initial_date") or element.get("initial_time") or ""
    picked = (element.get("initial_option") or {}).get("text", {}).get("text", "")
    words = html.escape(first or picked) or ("☐ Yes" if element["type"] == "checkboxes" else "")
    tall = " tall" if element.get("multiline") else ""
    hint = f'<div class="context">{_plain(block["hint"])}</div>' if "hint" in block else ""
    more = ' <span class="at">(optional)</span>' if block.get("optional") else ""
    return f'<div class="label">{_plain(block["label"])}{more}</div><div class="field{tall}">{words}</div>{hint}'


def _plain(text: Block) -> str:
    return html.escape(text["text"])


def _markup(markup: str, reader: Reader) -> str:
    """Markup as it is shown. Slack's own escapes stay as they are: they are HTML's."""
    out, at = [], 0
    for found in _TOKEN.finditer(markup):
        out += [_marked(markup[at : found.start()]), _token(found, reader)]
        at = found.end()
    return "".join(out) + _marked(markup[at:])


def _token(found: re.Match[str], reader: Reader) -> str:
    if found["ts"]:
        at = datetime.fromtimestamp(int(found["ts"]), reader.zone)
        return found["shown"].format(time=f"{at:%H:%M}", date_short_pretty=f"{at:%b} {at.day}")
    if found["user"]:
        return f"<a>@{html.escape(reader.names.get(found['user'], found['user']))}</a>"
    return f"<a>{found['label'] or found['url']}</a>"


def _marked(words: str) -> str:
    words = words.replace("<", "&lt;").replace(">", "&gt;")
    for pattern, tag in _MARKS:
        words = re.sub(pattern, rf"<{tag}>\1</{tag}>", words)
    lines = words.split("\n")
    quoted = [re.sub(r"^&gt; ?(.*)$", r"<blockquote>\1</blockquote>", line) for line in lines]
    return "\n".join(quoted).replace("</blockquote>\n", "</blockquote>")
