"""A plan as a markdown script: the shapes where they say it all, `key: value` for the rest, a fenced block for what
no line can hold. Reading what is printed gives an equal plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.domain.catalog import Arg, Catalog, OpSpec
from bot.domain.plan import Default, Op, Plan, Region
from bot.language import program, refs, words
from bot.language.addressees import looks_like
from bot.language.arguments import KEYWORDS, field_of
from bot.language.jsontext import pretty, quote
from bot.language.lower import command
from bot.language.shape import kinds

WIDTH = 110
_PLAIN = re.compile(r"[^\W\d][\w./@*+-]*\Z|\d+[smhdw]\Z|\d{4}-\d{2}-\d{2}\Z")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\u200b\u2028\u2029\u2060\ufeff\ud800-\udfff]|<(?=https?://|mailto:|tel:)"
)
_KEY = re.compile(r"[A-Za-z_][\w-]*\Z", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d*[1-9])?\Z")
_TO_THE_END = ("core.let", "core.if", "core.transform")
"""Their line is an expression to its end, so nothing else can stand on it."""

_NOT_TEXTS = ("true", "false", "null")


@dataclass(slots=True)
class _Item:
    """One op being printed: the words of its line, its quote, and what must go into a block."""

    words: list[str]
    quote: list[str] = field(default_factory=list)
    block: dict[str, Any] = field(default_factory=dict)
    tail: str | None = None


def as_markdown(plan: Plan, catalog: Catalog) -> str:
    """The plan as a script of the markdown surface."""
    out = _front(plan)
    out.extend(_region(plan.program, catalog, 0))
    if plan.on_error is not None and plan.on_error.ops:
        out.append("- error")
        out.extend(_region(plan.on_error, catalog, 2))
    return "\n".join(out) + "\n"


def _front(plan: Plan) -> list[str]:
    given = program.head(plan)
    if plan.on_error is not None and not plan.on_error.ops:
        given["onError"] = []
    if not given:
        return []
    lines = ["---"]
    for key, value in given.items():
        if key in ("inputs", "on") and value:
            lines.append(f"{key}:")
            entries = value.items() if isinstance(value, dict) else (("-", entry) for entry in value)
            lines.extend(f"  {name}: {quote(v)}" if key == "inputs" else f"  - {quote(v)}" for name, v in entries)
        else:
            lines.append(f"{key}: {quote(value)}")
    return [*lines, "---", ""]


def _region(region: Region, catalog: Catalog, indent: int) -> list[str]:
    lines: list[str] = []
    for op in region.ops:
        lines.extend(_op(op, catalog, indent, "- "))
    return lines


def _op(op: Op, catalog: Catalog, indent: int, lead: str) -> list[str]:
    spec = catalog.get(op.op)
    item = _Item([f"{op.id} = {command(op.op)}" if op.id is not None else command(op.op)])
    left = dict(op.params)
    if spec is None or spec.tool:
        _tool(item, spec, left)
    else:
        _arguments(item, op, spec, left)
    _fields(item, op, spec)
    below = _empty_regions(item, op)
    line = " ".join(item.words) + (f" {item.tail}" if item.tail is not None else "")
    pad = " " * (indent + 2)
    lines = [f"{' ' * indent}{lead}{line}"]
    lines.extend(f"{pad}> {text}" if text else f"{pad}>" for text in item.quote)
    lines.extend(_block(item.block, pad))
    if isinstance(op.on_miss, Region) and op.on_miss.ops:
        lines.extend([f"{pad}- miss", *_region(op.on_miss, catalog, indent + 4)])
    elif op.on_miss == "replan":
        lines.append(f"{pad}- miss replan")
    if isinstance(op.on_error, Region) and op.on_error.ops:
        lines.extend([f"{pad}- error", *_region(op.on_error, catalog, indent + 4)])
    lines.extend(_below(op, below, catalog, indent))
    return lines


def _empty_regions(item: _Item, op: Op) -> Mapping[str, Region]:
    """The regions to print as items; those without ops go into the block."""
    if isinstance(op.on_miss, Region) and not op.on_miss.ops:
        item.block["onMiss"] = []
    if isinstance(op.on_error, Region) and not op.on_error.ops:
        item.block["onError"] = []
    if op.op == "flow.parallel":
        if not op.regions:
            item.block["branches"] = [] if op.branches_listed else {}
        return op.regions
    for name, region in op.regions.items():
        if not region.ops and name != "else":
            item.block[name] = []
    return {name: region for name, region in op.regions.items() if region.ops or name == "else"}


def _below(op: Op, regions: Mapping[str, Region], catalog: Catalog, indent: int) -> list[str]:
    lines: list[str] = []
    for name, region in regions.items():
        if op.op == "flow.parallel":
            lines.append(f"{' ' * (indent + 2)}- branch" + ("" if op.branches_listed else f" {name}"))
            lines.extend(_region(region, catalog, indent + 4))
        elif name != "else":
            lines.extend(_region(region, catalog, indent + 2))
    if (other := regions.get("else")) is not None:
        first = other.ops[0] if len(other.ops) == 1 else None
        if first is not None and first.op == "core.if" and first.id is None:
            lines.extend(_op(first, catalog, indent, "- else "))
        else:
            lines.extend([f"{' ' * indent}- else", *_region(other, catalog, indent + 2)])
    return lines


def _block(given: Mapping[str, Any], pad: str) -> list[str]:
    if not given:
        return []
    return [f"{pad}```json", *(pad + line for line in pretty(dict(given)).split("\n")), f"{pad}```"]


def _arguments(item: _Item, op: Op, spec: OpSpec, left: dict[str, Any]) -> None:
    expression = next((arg.name for arg in spec.args if arg.kind == "expression"), None)
    said: dict[str, str] = {}
    contiguous = True
    for arg in spec.args:
        if arg.kind == "addressee":
            _addressee(item, op)
            continue
        if arg.kind == "expression" or arg.name not in left:
            contiguous = contiguous and (arg.kind == "expression" or arg.optional)
            continue
        could_address = arg.kind == "choices" and spec.args[0].kind == "addressee" and len(item.words) == 1
        word = _place(arg, left[arg.name], could_address) if contiguous else None
        if word is None:
            contiguous = False
        else:
            said[arg.name] = word
            del left[arg.name]
    item.words.extend(said.values())
    tail = _tail(left.get(expression)) if expression in left else None
    if spec.name == "core.transform" and "|" in "".join(said.values()):
        left["from"] = op.params["from"]
        item.words = item.words[:1]
    if tail is not None:
        item.tail = {"core.transform": f"| {tail}", "core.repeat": f"until {tail}"}.get(spec.name, tail)
        del left[str(expression)]
    _quoted(item, spec, left)
    if spec.name == "run" and "inputs" in left:
        _inputs(item, spec, left.pop("inputs"))
    block_only = spec.name in _TO_THE_END
    for key, value in left.items():
        word = None if block_only else _keyed(spec, key, value)
        if word is None:
            item.block[key] = value
        else:
            item.words.append(word)


def _addressee(item: _Item, op: Op) -> None:
    if isinstance(op.to, str) and (word := _bare(op.to)) is not None and looks_like(word):
        item.words.append(word)


def _place(arg: Arg, value: Any, could_address: bool) -> str | None:
    """A value in its place among the arguments, or None where it cannot stand there."""
    if arg.many:
        return _many(arg, value, could_address)
    if arg.kind == "number":
        return str(value) if type(value) is int and abs(value) < 10**15 and value >= arg.least else _name(value)
    if arg.kind == "value":
        return _bracket(value) if isinstance(value, (list, dict)) else _name(value)
    if arg.kind == "stream" and isinstance(value, list):
        return _bracket(value)
    return _literal(value)


def _many(arg: Arg, value: Any, could_address: bool) -> str | None:
    """`could_address`: its first word would be taken for the addressee if it looks like one."""
    if arg.kind == "choices" and isinstance(value, str) and refs.parse(value).whole and not could_address:
        return refs.to_braces(value)
    if not isinstance(value, list) or not value:
        return None
    if arg.kind == "choices" and len(value) == 1 and isinstance(value[0], str) and refs.parse(value[0]).whole:
        return None
    found = [_literal(entry) for entry in value]
    texts = [word for word in found if word is not None]
    if len(texts) < len(found):
        return None
    if could_address and looks_like(texts[0]):
        texts[0] = f'"{texts[0]}"' if '"' not in texts[0] and "\\" not in texts[0] else texts[0]
        if looks_like(texts[0]):
            return None
    return " ".join(texts)


def _name(value: Any) -> str | None:
    """`$x` as the bound name `x`, or `{x}` where a name could be read otherwise."""
    if not isinstance(value, str):
        return None
    template = refs.parse(value)
    if not template.whole or f"${template.refs[0].text}" != value:
        return None
    text = template.refs[0].text
    plain = re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", text) and text not in KEYWORDS
    word = text if plain else f"{{{text}}}"
    return word if _UNSAFE.search(word) is None and " " not in word else None


def _literal(value: Any) -> str | None:
    """A text as one word, quoted where it must be."""
    if not isinstance(value, str):
        return None
    bare = _bare(value)
    if bare is not None and (_PLAIN.match(bare) or _whole(value)) and bare not in KEYWORDS and bare not in _NOT_TEXTS:
        return bare
    return _in_quotes(refs.to_braces(value))


def _bare(value: str) -> str | None:
    """A text as a word without quotes, where it reads back as itself."""
    text = refs.to_braces(value)
    if not text or _UNSAFE.search(text):
        return None
    word = words.next_word(text, 0, len(text))
    if word is None or word.quoted or word.raw != text or text.endswith((":", ",")):
        return None
    return text if words.literal(word).value == value else None


def _whole(value: str) -> bool:
    return "$" in value and refs.parse(value).whole


def _in_quotes(text: str | None) -> str | None:
    if text is None or _UNSAFE.search(text):
        return None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    word = words.next_word(f'"{escaped}"', 0, len(escaped) + 2)
    return word.raw if word is not None and word.end == len(escaped) + 2 and word.value == text else None


def _tail(value: Any) -> str | None:
    """An expression at its item's end."""
    if not isinstance(value, str) or not value or value != value.strip() or "\n" in value or _UNSAFE.search(value):
        return None
    return value if not value.endswith("`") else None


def _bracket(value: Any) -> str | None:
    """A list or object on the line, words without quotes where they are none but words."""
    text = _loose(value)
    return text if len(text) <= WIDTH - 40 and "\n" not in text else None


def _loose(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_loose(item) for item in value)}]"
    if isinstance(value, dict) and value:
        keys = [key if re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII) else quote(key) for key in value]
        return f"{{{', '.join(f'{key}: {_loose(item)}' for key, item in zip(keys, value.values(), strict=True))}}}"
    if (
        isinstance(value, str)
        and re.fullmatch(r"[A-Za-z][\w-]*|\d+[smhdw]", value, re.ASCII)
        and value not in _NOT_TEXTS
    ):
        return value
    return quote(value)


def _keyed(spec: OpSpec | None, key: str, value: Any) -> str | None:
    """`key: value`, or None where a line cannot hold it."""
    if not _KEY.match(key):
        return None
    schema = _schema(spec, key)
    allowed = kinds(schema)
    if isinstance(value, (list, dict)):
        text = _bracket(value)
        return f"{key}: {text}" if text is not None and not re.fullmatch(r"\{\w*\}", text) else None
    if value is None:
        return f"{key}: null" if not allowed or "null" in allowed else None
    if isinstance(value, bool):
        return f"{key}: {str(value).lower()}" if not allowed or "boolean" in allowed else None
    if isinstance(value, (int, float)):
        text = str(value)
        fits = not allowed or allowed & {"number", "integer"}
        return f"{key}: {text}" if fits and _NUMBER.match(text) else None
    if spec is not None and not spec.tool and key in spec.expressions:
        word = _in_quotes(value)
        return f"{key}: {word}" if word is not None else None
    if spec is not None and not spec.tool and key == "as":
        return f"as {value}"
    if (
        spec is not None
        and not spec.tool
        and key == "in"
        and spec.expects.get(key) == "list"
        and (name := _name(value)) is not None
    ):
        return f"{key} {name}"
    word = _literal(value)
    return f"{key}: {word}" if word is not None else None


def _schema(spec: OpSpec | None, key: str) -> Mapping[str, Any]:
    if spec is None or spec.name == "run":
        return {}
    found = (spec.schema or {}) if spec.tool else spec.params
    schema = found.get("properties", {}).get(key, {})
    return schema if isinstance(schema, Mapping) else {}


def _quoted(item: _Item, spec: OpSpec, left: dict[str, Any]) -> None:
    """The parameter that the quote holds, if the quote can."""
    value = left.get(spec.quote) if spec.quote is not None else None
    if not isinstance(value, str):
        return
    text = refs.to_braces(value)
    if text is None or not text or _UNSAFE.search(text):
        return
    item.quote = text.split("\n")
    del left[str(spec.quote)]


def _tool(item: _Item, spec: OpSpec | None, left: dict[str, Any]) -> None:
    clash = any(field_of(spec, key) or key in ("params", "inputs") for key in left)
    rest: dict[str, Any] = {}
    for key, value in left.items():
        word = None if clash else _keyed(spec, key, value)
        if word is None:
            rest[key] = value
        else:
            item.words.append(word)
    if clash:
        item.block["params"] = rest
    else:
        item.block.update(rest)


def _inputs(item: _Item, spec: OpSpec, given: Any) -> None:
    """The inputs of a `run`, one by one where they are an object whose keys are none of the op's own."""
    if not isinstance(given, dict) or not given or any(field_of(spec, key) or key == "params" for key in given):
        item.block["inputs"] = given
        return
    for key, value in given.items():
        word = _keyed(spec, key, value)
        if word is None:
            item.block[key] = value
        else:
            item.words.append(word)


def _fields(item: _Item, op: Op, spec: OpSpec | None) -> None:
    on_line = op.op not in _TO_THE_END
    own = set(item.block)
    if _to_left(item, op):
        _field(item, "to", op.to, on_line=on_line)
    _field(item, "from", op.from_, on_line=on_line)
    _field(item, "within", op.within, on_line=on_line)
    _field(item, "by", op.by, on_line=on_line)
    if op.after and on_line:
        item.words.append(f"after {', '.join(op.after)}")
    elif op.after:
        item.block["after"] = list(op.after)
    taken = _taken(spec)
    sign = "" if "onError" in taken else ":"
    if isinstance(op.on_error, str):
        _field(item, "onError", op.on_error, on_line=on_line, sign=sign)
    elif isinstance(op.on_error, Default):
        _field(item, "onError", {"default": op.on_error.value}, on_line=on_line, sign=sign)
    if op.retry is not None:
        _field(item, "retry", program.retry(op.retry), on_line=on_line, sign="" if "retry" in taken else ":")
    if (set(item.block) - own) & taken and "params" not in item.block:
        params = {key: value for key, value in item.block.items() if key in own}
        item.block = {"params": params, **{key: value for key, value in item.block.items() if key not in own}}


def _taken(spec: OpSpec | None) -> set[str]:
    """The parameters that a tool's schema names: as `key: …` they are the tool's, also where a field is called so."""
    return set((spec.schema or {}).get("properties", {})) if spec is not None and spec.tool else set()


def _to_left(item: _Item, op: Op) -> bool:
    """Whether the addressee did not find its place among the words."""
    if op.to is None:
        return False
    return not (isinstance(op.to, str) and (word := _bare(op.to)) is not None and word in item.words[1:2])


def _field(item: _Item, key: str, value: Any, *, on_line: bool, sign: str = "") -> None:
    if value is None:
        return
    word = _bracket(value) if isinstance(value, (list, dict)) else _literal(value)
    if not on_line or word is None:
        item.block[key] = value
    else:
        item.words.append(f"{key}{sign} {word}")
