"""Pictures of pages, small and steady: a palette of 256 colours; a shade that moved by itself makes no new picture."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

HEAD = b"\x89PNG\r\n\x1a\n"
COLOURS, GROUNDS = 256, 64
"""A palette's colours, and how many of them are simply the most frequent; the others are far from each other."""
SHADE = 200
"""The square of a distance of two colours below which one may stand for the other."""
SEEN = 48
"""By how much of 255 a pixel must change for the eye: a browser draws some edges a shade off from run to run."""
RGB, PALETTE = 2, 3


def packed(picture: bytes) -> bytes:
    """The same picture with a palette; a colour that has no place in it becomes its nearest one."""
    rows = _rows(picture)
    often = [colour for colour, _ in Counter(pixel for row in rows for pixel in row).most_common()]
    palette = often[:GROUNDS]
    index = {colour: at for at, colour in enumerate(palette)}
    for colour in often[GROUNDS:]:
        near = min(range(len(palette)), key=lambda at, to=colour: _apart(palette[at], to))
        if len(palette) < COLOURS and _apart(palette[near], colour) > SHADE:
            near = len(palette)
            palette.append(colour)
        index[colour] = near
    lines = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, PALETTE, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return HEAD + b"".join(_chunk(kind, body) for kind, body in parts)


def alike(one: bytes, other: bytes) -> bool:
    """Whether the eye sees the same in both."""
    ours, theirs = _rows(one), _rows(other)
    if (len(ours), len(ours[0])) != (len(theirs), len(theirs[0])):
        return False
    return all(
        max(abs(x - y) for x, y in zip(a, b, strict=True)) <= SEEN
        for above, below in zip(ours, theirs, strict=True)
        if above != below
        for a, b in zip(above, below, strict=True)
        if a != b
    )


def _apart(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _rows(picture: bytes) -> list[list[bytes]]:
    """The pixels of a picture, each its three bytes: one of a browser (RGB, eight bits) or one of `packed`."""
    assert picture.startswith(HEAD)
    parts: dict[bytes, bytes] = {}
    at = len(HEAD)
    while at < len(picture):
        (size,), kind = struct.unpack(">I", picture[at : at + 4]), picture[at + 4 : at + 8]
        parts[kind] = parts.get(kind, b"") + picture[at + 8 : at + 8 + size]
        at += size + 12
    width, height, depth, colour, *_, interlaced = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert depth == 8 and colour in (RGB, PALETTE) and not interlaced
    each = 3 if colour == RGB else 1
    raw, step = zlib.decompress(parts[b"IDAT"]), 1 + width * each
    rows, above = [], bytes(width * each)
    for start in range(0, height * step, step):
        above = _unfiltered(raw[start], bytearray(raw[start + 1 : start + step]), above, each)
        if colour == RGB:
            rows.append([above[x : x + 3] for x in range(0, width * 3, 3)])
        else:
            rows.append([parts[b"PLTE"][x * 3 : x * 3 + 3] for x in above])
    return rows


def _unfiltered(how: int, line: bytearray, above: bytes, each: int) -> bytes:
    """A row without the filter that PNG puts over it (PNG specification, 9.2)."""
    for at in range(len(line) if how else 0):
        left, up, corner = (line[at - each], above[at], above[at - each]) if at >= each else (0, above[at], 0)
        if how == 1:
            guess = left
        elif how == 2:
            guess = up
        elif how == 3:
            guess = (left + up) // 2
        else:
            near = left + up - corner
            guess = min((left, up, corner), key=lambda one: abs(near - one))
        line[at] = (line[at] + guess) & 255
    return bytes(line)
