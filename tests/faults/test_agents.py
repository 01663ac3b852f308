"""A fan-out whose process is killed at its middle: what was saved is not asked again, and nothing is missing."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import httpx2
import pytest

from tests.doubles.claude import KEY, Body, Says, Uses, claude, last, prompt
from tests.faults.served import Served
from tests.runtime.world import until

FILES = 200
SCRIPT = """\
- files = glob notes/*.md
- answers = each files
  > Read {it} and say its number.
- numbers = transform answers | map(tonumber) | sort
- show numbers
"""


def path_of(body: Body) -> str:
    return re.findall(r"notes/\d+\.md", prompt(body))[0]


def reader(body: Body) -> Says | Uses:
    return Uses((("read", {"path": path_of(body)}),)) if len(body["messages"]) == 1 else Says(last(body).strip())


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_two_hundred_files_survive_a_kill_and_no_saved_answer_is_asked_for_again(tmp_path: Path) -> None:
    (tmp_path / "files" / "notes").mkdir(parents=True)
    for n in range(FILES):
        (tmp_path / "files" / "notes" / f"{n}.md").write_text(f"{n}\n")
    async with claude(reader, latency_s=0.02) as api:
        served = Served(tmp_path, "http://127.0.0.1:9", more={"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url})
        served.make_tokens()
        try:
            await _killed_at_its_middle(served, api)
        finally:
            served.kill()
    assert api.refused == []


async def _killed_at_its_middle(served: Served, api: object) -> None:
    headers = {"authorization": f"Bearer {served.tokens['bo']}"}
    async with httpx2.AsyncClient(timeout=20, headers=headers) as client:
        await _ready(served, client)
        started = await client.post(f"{served.url}/api/runs", json={"script": SCRIPT})
        assert started.status_code == 201, started.text
        run = started.json()["id"]
        seen = api.seen  # type: ignore[attr-defined]
        await until(lambda: len(seen) >= FILES, 60)
        served.kill()
        kept = _saved(served.folder / "waiton.db")
        before = len(seen)
        assert 0 < len(kept) < FILES
        await _ready(served, client)

        async def over() -> object:
            found = (await client.get(f"{served.url}/api/runs/{run}")).json()
            return found if found["state"] in ("done", "failed") else None

        shown = await until(over, 90)
    assert shown["state"] == "done" and shown["result"] == list(range(FILES))
    again = {path_of(body) for body in seen[before:]}
    paths = sorted(f"notes/{n}.md" for n in range(FILES))
    assert again == {path for at, path in enumerate(paths) if at not in kept}
    assert shown["cost"]["agent_calls"] >= 2 * FILES


async def _ready(served: Served, client: httpx2.AsyncClient) -> None:
    served.start()

    async def ready() -> bool:
        try:
            return (await client.get(f"{served.url}/readyz")).status_code == 200
        except httpx2.HTTPError:
            return False

    await until(ready, 40)


def _saved(database: Path) -> set[int]:
    """The elements whose answer had been saved."""
    with sqlite3.connect(database) as found:
        return {at for (at,) in found.execute("select at from element")}
