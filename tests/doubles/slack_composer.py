"""What Slack's composer makes of a pasted text: the same script as plain paste, as a code block, as rich text.

The shapes follow `pasted.json` of the platform notes: links in every form, lists by their indent, quotes between lists,
emoji as elements, marks that became formatting."""

from __future__ import annotations

import re
from typing import Any

Element = dict[str, Any]

_LINKED = re.compile(
    r"(?P<url>https?://[^\s\"'<>]+[\w/])|(?P<mail>[\w.+-]+@[\w-]+\.\w+)"
    r"|(?<![\w/.@*])(?P<host>[\w-]+(?:\.[\w-]+)*\.(?:md|rs|sh|py|com|org|io))(?![\w/])"
)
_EMOJI = {"🚀": ("rocket", "1f680"), "✅": ("white_check_mark", "2705"), "👍": ("+1", "1f44d")}
_EMOJI_SPLIT = re.compile("([" + "".join(_EMOJI) + "])")
_ITEM = re.compile(r"^(?P<pad>[ \t]*)(?P<mark>[-*+•]|(?P<number>\d+)[.)]) (?P<rest>.*)$")
_QUOTE = re.compile(r"^[ \t]*> ?(?P<rest>.*)$")
_FENCE = re.compile(r"^[ \t]*```(?P<name>\w*)[ \t]*$")
_MARKED = re.compile(r"(?<![\w*])(?P<mark>[*_~`])(?=\S)(?P<inner>[^*_~`\n]+?)(?<=\S)(?P=mark)(?![\w*])")
_STYLES = {"*": "bold", "_": "italic", "~": "strike", "`": "code"}


def text(words: str, **style: bool) -> Element:
    return {"type": "text", "text": words} | ({"style": style} if style else {})


def inline(words: str, *, emoji: bool = True, marks: bool = False) -> list[Element]:
    """A run of text as elements: addresses linked, emoji as elements, and, as typed live, marks as formatting."""
    out: list[Element] = []
    at = 0
    if marks:
        for found in _MARKED.finditer(words):
            out += inline(words[at : found.start()], emoji=emoji)
            out.append(text(found["inner"], **{_STYLES[found["mark"]]: True}))
            at = found.end()
        return out + inline(words[at:], emoji=emoji)
    for found in _LINKED.finditer(words):
        out += _plain(words[at : found.start()], emoji)
        one = found[0]
        if found["mail"]:
            out.append({"type": "link", "url": f"mailto:{one}", "text": one})
        elif found["host"]:
            out.append({"type": "link", "url": f"http://{one}", "text": one})
        else:
            out.append({"type": "link", "url": one})
        at = found.end()
    return out + _plain(words[at:], emoji)


def _plain(words: str, emoji: bool) -> list[Element]:
    if not emoji:
        return [text(words)] if words else []
    return [
        {"type": "emoji", "name": _EMOJI[piece][0], "unicode": _EMOJI[piece][1]} if piece in _EMOJI else text(piece)
        for piece in _EMOJI_SPLIT.split(words)
        if piece
    ]


def section(elements: list[Element]) -> Element:
    return {"type": "rich_text_section", "elements": elements}


def rich_text(*parts: Element) -> list[Element]:
    return [{"type": "rich_text", "block_id": "b1", "elements": list(parts)}]


def as_text(script: str, bot: str = "") -> list[Element]:
    """Pasted as plain text: one section."""
    lead: list[Element] = [{"type": "user", "user_id": bot}, text("\n")] if bot else []
    return rich_text(section(lead + inline(script)))


def as_code(script: str, bot: str = "", *, words: str = "", language: str = "") -> list[Element]:
    """Pasted into a code block, after a mention and perhaps words."""
    lead = [section([{"type": "user", "user_id": bot}, text(f" {words}\n")])] if bot else []
    held = inline(f"{language}\n{script}" if language else script, emoji=False)
    return rich_text(*lead, {"type": "rich_text_preformatted", "elements": held, "border": 0})


def as_rich(script: str, bot: str = "") -> list[Element]:
    """Formatted: items are lists, quotes stand between them and lose their indent, marks are formatting, blank lines
    between them are gone."""
    parts: list[Element] = [section([{"type": "user", "user_id": bot}, text(" ")])] if bot else []
    parts += _Composer().read(script)
    return rich_text(*parts)


class _Composer:
    """Lines to elements of rich text; items know how deep they are by the markers above them."""

    def __init__(self) -> None:
        self.parts: list[Element] = []
        self.columns: list[int] = []

    def read(self, script: str) -> list[Element]:
        lines = script.split("\n")
        n = 0
        prose: list[str] = []
        while n < len(lines):
            line = lines[n]
            if fence := _FENCE.match(line):
                self._prose(prose)
                n = self._code(lines, n, fence["name"])
            elif item := _ITEM.match(line):
                self._prose(prose)
                n = self._item(lines, n, item)
            elif _QUOTE.match(line):
                self._prose(prose)
                n = self._quote(lines, n)
            else:
                prose.append(line)
                n += 1
        self._prose(prose)
        return self.parts

    def _prose(self, prose: list[str]) -> None:
        words = "\n".join(prose).strip("\n")
        if words.strip():
            self.parts.append(section(inline(words, marks=True)))
        prose.clear()

    def _code(self, lines: list[str], n: int, name: str) -> int:
        end = n + 1
        while end < len(lines) and not _FENCE.match(lines[end]):
            end += 1
        held = "\n".join(([name] if name else []) + lines[n + 1 : end])
        self.parts.append({"type": "rich_text_preformatted", "elements": inline(held, emoji=False), "border": 0})
        return end + 1

    def _item(self, lines: list[str], n: int, item: re.Match[str]) -> int:
        column = len(item["pad"].expandtabs(4))
        while self.columns and self.columns[-1] + 2 > column:
            self.columns.pop()
        depth = len(self.columns)
        self.columns.append(column)
        words = [item["rest"]]
        n += 1
        # What is indented below an item and is neither an item nor a quote was written on with Shift and Enter.
        while n < len(lines) and lines[n][:1] == " " and not any(p.match(lines[n]) for p in (_ITEM, _QUOTE, _FENCE)):
            words.append(lines[n].strip())
            n += 1
        style = "ordered" if item["number"] else "bullet"
        made = section(inline("\n".join(words), marks=True))
        last = self.parts[-1] if self.parts else {}
        if last.get("type") == "rich_text_list" and (last["indent"], last["style"]) == (depth, style):
            last["elements"].append(made)
        else:
            offset = {"offset": int(item["number"]) - 1} if item["number"] and item["number"] != "1" else {}
            self.parts.append(
                {"type": "rich_text_list", "style": style, "indent": depth, "border": 0, "elements": [made], **offset}
            )
        return n

    def _quote(self, lines: list[str], n: int) -> int:
        held: list[str] = []
        while n < len(lines) and (found := _QUOTE.match(lines[n])):
            held.append(found["rest"])
            n += 1
        while n < len(lines) and lines[n].strip() and not any(p.match(lines[n]) for p in (_ITEM, _QUOTE, _FENCE)):
            held.append(lines[n].strip())
            n += 1
        self.parts.append({"type": "rich_text_quote", "elements": inline("\n".join(held), marks=True)})
        return n
