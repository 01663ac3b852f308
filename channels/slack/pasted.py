"""What somebody wrote, exactly: what Slack's composer made of it undone.

`blocks` hold what the composer holds: lists, quotes, code, links, marks, nothing escaped. `text` is a lossy rendering
of it and is read where there are no blocks (clients and programs that post through the API)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Element = Mapping[str, Any]
Names = Callable[[str, str], str | None]
"""The words for a mention: of a `user` or a `group`, by its id; None where nobody knows."""

_BOT = "\0"
"""Stands for a mention of the bot until it is clear where it stands; no message has this character."""
_MARKS = (("bold", "*"), ("italic", "_"), ("strike", "~"), ("code", "`"))
_LANGUAGE = re.compile(r"\A(?:markdown|md|json5?|jsonc|ya?ml|text|txt)\n")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•◦▪–]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)
_BULLET = re.compile(r"^( *)[•◦▪︎]+ ", re.MULTILINE)
_MENTION = re.compile(r"<(@|#|!subteam\^|!)([^<>|]+)(?:\|([^<>]*))?>")
_LINK = re.compile(r"<([^<>|@#!][^<>|]*)(?:\|([^<>]*))?>")


@dataclass(frozen=True, slots=True)
class Pasted:
    """What was written. `undone`: Slack had made something else of it. `mentioned`: the bot is named in it."""

    text: str
    undone: bool = False
    mentioned: bool = False


def pasted(message: Mapping[str, Any], bot: str, names: Names) -> Pasted:
    """What a message says, without the mention of the bot that it begins or ends with. `bot`: the bot's user id."""
    blocks = [b for b in message.get("blocks") or () if b.get("type") == "rich_text"]
    if blocks:
        reader = _Reader(bot, names)
        text = reader.message([part for block in blocks for part in block["elements"]])
        undone = reader.undone
    else:
        given = str(message.get("text") or "")
        text = _from_text(given, bot, names)
        undone = text != given.replace(f"<@{bot}>", _BOT)
    return Pasted(_without_mention(text), undone, _BOT in text)


def mentions(message: Mapping[str, Any]) -> list[str]:
    """The ids of the people that a message names, each once."""
    found = [e["user_id"] for e in _walk(message.get("blocks") or ()) if e.get("type") == "user"]
    if not message.get("blocks"):
        found = [m[2] for m in _MENTION.finditer(str(message.get("text") or "")) if m[1] == "@"]
    return list(dict.fromkeys(found))


def _walk(value: Any) -> Iterator[Element]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _walk(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _walk(inner)


def _without_mention(text: str) -> str:
    text = re.sub(rf"\A\s*{_BOT}[^\S\n]*\n?", "", text)
    text = re.sub(rf"[^\S\n]*{_BOT}\s*\Z", "", text)
    return text.replace(_BOT, "@waiton")


class _Reader:
    """Reads rich text back, and notes whether there was anything to undo."""

    def __init__(self, bot: str, names: Names) -> None:
        self.bot = bot
        self.names = names
        self.undone = False

    def message(self, parts: Sequence[Element]) -> str:
        code = [part for part in parts if part["type"] == "rich_text_preformatted"]
        if len(code) == 1 and all(part in code or self._is_prose(part) for part in parts):
            words = "".join(self.inline(part["elements"]) for part in parts if part not in code)
            self.undone = False
            script = self.inline(code[0]["elements"])
            bare = _LANGUAGE.sub("", script)
            self.undone = self.undone or bare != script
            return f"{_BOT if _BOT in words else ''}{bare}"
        return self._joined(parts)

    def _is_prose(self, part: Element) -> bool:
        """Whether it is words around a code block, and no part of a script."""
        return part["type"] == "rich_text_section" and not _ITEM.search(self.inline(part["elements"]))

    def _joined(self, parts: Sequence[Element]) -> str:
        """Every part on lines of its own. Where text follows a list or a quote, and a quote a quote, a blank line
        stands between: they were apart, and a line directly below would continue what is above."""
        out, before = "", ""
        for part in parts:
            kind = part["type"]
            if out and not out.endswith("\n"):
                out += "\n"
            apart = before in ("rich_text_list", "rich_text_quote") and kind == "rich_text_section"
            if out and (apart or before == kind == "rich_text_quote"):
                out += "\n"
            out += self._part(part)
            before = kind
        return out

    def _part(self, part: Element) -> str:
        match part["type"]:
            case "rich_text_section":
                return self.inline(part["elements"])
            case "rich_text_preformatted":
                self.undone = True
                return f"```{self.inline(part['elements'])}\n```\n" if self._named(part) else self._fenced(part)
            case "rich_text_quote":
                self.undone = True
                return "".join(f"> {line}\n" for line in self.inline(part["elements"]).split("\n"))
            case "rich_text_list":
                self.undone = True
                return "".join(self._items(part))
            case _:
                return ""

    def _named(self, part: Element) -> bool:
        """Whether a code block's first line is its language."""
        return bool(_LANGUAGE.match(self.inline(part["elements"])))

    def _fenced(self, part: Element) -> str:
        return f"```\n{self.inline(part['elements'])}\n```\n"

    def _items(self, part: Element) -> Iterator[str]:
        pad = "  " * int(part.get("indent") or 0)
        first = int(part.get("offset") or 0) + 1
        for n, item in enumerate(part["elements"], first):
            mark = f"{n}. " if part.get("style") == "ordered" else "- "
            yield f"{pad}{mark}{self.inline(item['elements']).replace(chr(10), chr(10) + pad + '  ')}\n"

    def inline(self, elements: Iterable[Element]) -> str:
        """The text of a line or more, with the marks that became formatting."""
        out, open_ = "", list[str]()
        for element in elements:
            words = self._words(element)
            style = element.get("style") or {}
            want = [mark for name, mark in _MARKS if style.get(name)] if words.strip() else open_
            keep = 0
            while keep < len(open_) and open_[keep] in want:
                keep += 1
            out = _closed(out, open_[keep:])
            more = [mark for mark in want if mark not in open_[:keep]]
            lead = words[: len(words) - len(words.lstrip())] if more else ""
            out += lead + "".join(more) + words[len(lead) :]
            open_ = [*open_[:keep], *more]
            self.undone = self.undone or bool(more)
        return _closed(out, open_)

    def _words(self, element: Element) -> str:
        kind = element["type"]
        if kind == "text":
            return element["text"]
        if kind == "user" and element["user_id"] == self.bot:
            return _BOT
        self.undone = True
        match kind:
            case "link":
                return element.get("text") or element["url"].removeprefix("mailto:")
            case "emoji":
                code = element.get("unicode")
                return "".join(chr(int(h, 16)) for h in code.split("-")) if code else f":{element['name']}:"
            case "user":
                return self.names("user", element["user_id"]) or f"<@{element['user_id']}>"
            case "usergroup":
                return self.names("group", element["usergroup_id"]) or f"<!subteam^{element['usergroup_id']}>"
            case "channel":
                return f"<#{element['channel_id']}>"
            case "broadcast":
                return f"@{element['range']}"
            case "color":
                return element["value"]
            case "date":
                return element.get("fallback") or str(element["timestamp"])
            case _:
                return str(element.get("text") or "")


def _closed(out: str, marks: Sequence[str]) -> str:
    """The text with marks closed behind its last word."""
    if not marks:
        return out
    words = out.rstrip()
    return f"{words}{''.join(reversed(marks))}{out[len(words) :]}"


def _from_text(text: str, bot: str, names: Names) -> str:
    def named(found: re.Match[str]) -> str:
        kind, ident, label = found.groups()
        match kind:
            case "@":
                return _BOT if ident == bot else names("user", ident) or (f"@{label}" if label else found[0])
            case "!subteam^":
                return names("group", ident) or label or found[0]
            case "#":
                return f"#{label}" if label else found[0]
            case _:
                return label or f"@{ident}"

    text = _BULLET.sub(lambda found: "  " * (len(found[1]) // 4) + "- ", text)
    text = _LINK.sub(lambda found: found[2] or found[1].removeprefix("mailto:"), text)
    text = _MENTION.sub(named, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
