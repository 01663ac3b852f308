"""The room's own files, under names with a hash of their content, so that browsers may keep them for ever."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@lru_cache(maxsize=1)
def files() -> dict[str, tuple[str, bytes]]:
    """Hashed name → media type and content of every file."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in TYPES:
            body = path.read_bytes()
            found[f"{path.stem}.{hashlib.sha256(body).hexdigest()[:12]}{path.suffix}"] = (TYPES[path.suffix], body)
    return found


def asset(name: str) -> str:
    """Where a file of the room is: `room.css` → `/static/room.3f….css`."""
    stem, _, suffix = name.rpartition(".")
    hashed = next(n for n in files() if n.startswith(f"{stem}.") and n.endswith(f".{suffix}"))
    return f"/static/{hashed}"


async def static(request: Request) -> Response:
    found = files().get(request.path_params["name"])
    if found is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    return Response(found[1], media_type=found[0], headers={"Cache-Control": "public, max-age=31536000, immutable"})
