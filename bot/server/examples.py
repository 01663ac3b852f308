"""Three scripts to begin with; they run on the example workspace as they are."""

from __future__ import annotations

from bot.domain.catalog import World

TITLES = {
    "ask": "Ask somebody, and go on with the answer",
    "approve": "Deploy after an approval, tell everybody",
    "evidence": "A done that must be seen to be believed",
}


def example(name: str, world: World, me: str) -> str | None:
    """An example's text, addressed to people who are here; None where there is none of this name."""
    others = [p for p in world.people if p.email != me] or list(world.people)
    first = f"@{others[0].name}" if others and " " not in others[0].name else me
    lead = "role:leads" if "leads" in world.roles else first
    match name:
        case "ask":
            return (
                f"- scope = ask {first} approve decline within 2d\n  > Extend the pilot to include S/4 writes?\n"
                f"  - miss\n    - say {lead}\n      > No answer on the pilot.\n"
                "- if scope == 'approve'\n  - say\n    > The pilot goes on, with writes.\n"
                "- else\n  - say\n    > We leave it as it is.\n"
            )
        case "approve":
            return (
                "- rollout = demo_deploy service: s4 mode: writes\n"
                "- say\n  > Rolling out: {rollout.url}\n- show rollout\n"
            )
        case "evidence":
            return (
                f"- swap = ask {first} done within 1d\n  > Replace the filter on line 2\n"
                "- seated = expect camera.line_2 within 10m after swap\n  - miss\n    - say\n"
                "      > The camera has not seen the new filter.\n- say\n  > Seen by the camera.\n"
            )
        case _:
            return None
