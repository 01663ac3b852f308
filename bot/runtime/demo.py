"""A demo set of tools, so that the examples run on a fresh machine. They touch nothing."""

from __future__ import annotations

from typing import Any

from bot.runtime.tools import Tool, tool


def list_prs(repo: str) -> list[dict[str, Any]]:
    """Open and closed pull requests of a made-up repository."""
    return [
        {"number": 41, "title": "Retry the webhook once", "state": "open", "author": "bo", "repo": repo},
        {"number": 40, "title": "Name the slow query", "state": "closed", "author": "ana", "repo": repo},
        {"number": 39, "title": "Say what a tap does", "state": "open", "author": "jonas", "repo": repo},
    ]


def book_class(slot: str) -> dict[str, Any]:
    """Books a class at a time of day."""
    return {"ok": True, "slot": slot}


def schedule(day: str = "today") -> list[str]:
    """The times of a day at which there is a class."""
    return ["07:30", "18:30", "20:00"]


def deploy(service: str, mode: str = "normal") -> dict[str, Any]:
    """Pretends to deploy a service."""
    return {"service": service, "mode": mode, "url": f"https://{service}.example.com"}


def restart(host: str) -> dict[str, Any]:
    """Pretends to restart a host."""
    return {"host": host, "restarted": True}


TOOLS: tuple[Tool, ...] = (
    tool("demo_list_prs", list_prs, read_only=True),
    tool("demo_schedule", schedule, read_only=True),
    tool("demo_book_class", book_class, destructive=False),
    tool("demo_deploy", deploy),
    tool("demo_restart", restart, idempotent=True),
)
