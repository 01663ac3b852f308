"""The door of the rehearsal: a script's text and a scenario in, a report out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from bot.domain.catalog import Catalog, World
from bot.domain.plan import Plan
from bot.language.read import read
from bot.language.script import Examined, examine
from bot.ops.builtin import catalog as catalog_of
from bot.rehearse.play import Chooser, Player, saved_scripts
from bot.rehearse.report import report
from bot.rehearse.scenario import Scenario, WrongScenario
from bot.runtime.report import input_names
from bot.runtime.sandbox import Sandbox


async def rehearse(text: str | bytes, scenario: Scenario) -> tuple[int, dict[str, Any]]:
    """Exit status (0 done, 1 otherwise, 2 refused) and the report of one rehearsal."""
    catalog, saved, world = surroundings(scenario)
    seen = examined(text, scenario, catalog, world)
    if seen.refused or seen.plan is None:
        return 2, {"refused": seen.reports()}
    sandbox = Sandbox()
    player = Player(scenario, catalog, saved, sandbox)
    try:
        await player.play(
            seen.plan, names_of(seen.plan, scenario), source=seen.read.source.pasted, surface=seen.read.surface
        )
        found = report(player, [note.message for note in seen.notes], dict(seen.preflight))
    finally:
        player.close()
        await sandbox.aclose()
    return (0 if found["state"] == "done" else 1), found


def surroundings(scenario: Scenario) -> tuple[Catalog, dict[str, Plan], World]:
    """The catalogue with the scenario's tools, its saved scripts, and the world it describes."""
    from dataclasses import replace

    catalog = catalog_of(scenario.tool_specs)
    saved: dict[str, Plan] = {}
    for name, text in scenario.saved.items():
        got = read(text, catalog)
        if got.plan is None or got.problems:
            raise WrongScenario(f"the saved script `{name}` does not read:\n{got.source.render(got.problems)}")
        saved[name] = got.plan
    return catalog, saved, replace(scenario.world(scenario.now), scripts=saved_scripts(saved))


def examined(text: str | bytes, scenario: Scenario, catalog: Catalog, world: World) -> Examined:
    escaping = cast(Literal["plain", "slack", "telegram"], scenario.pasted)
    return examine(text, catalog, world, inputs=scenario.inputs, escaping=escaping)


def names_of(plan: Plan, scenario: Scenario) -> dict[str, Any]:
    """What a run of the plan sees from outside: its inputs, or the job's names as they stand."""
    if plan.sealed:
        return input_names(plan, scenario.inputs or {})
    return dict(scenario.bindings)


async def walked(
    text: str | bytes, scenario: Scenario, patience: Callable[[], bool] | None = None
) -> tuple[int, dict[str, Any]]:
    """Every branch of a script, one outcome each, up to a bound, or as long as `patience` says."""
    from bot.rehearse.walk import BOUND, OutOfTime, Walker, next_way, outcome

    catalog, saved, world = surroundings(scenario)
    seen = examined(text, scenario, catalog, world)
    if seen.refused or seen.plan is None:
        return 2, {"refused": seen.reports()}
    sandbox = Sandbox()
    found: list[dict[str, Any]] = []
    way: tuple[int, ...] | None = ()
    try:
        while way is not None and len(found) < BOUND:
            chooser = Chooser(way)
            player = Walker(fresh(scenario), catalog, saved, sandbox, chooser)
            if patience is not None:
                player.patience = patience
            try:
                await player.walk(seen.plan, names_of(seen.plan, scenario))
                found.append(outcome(player, chooser))
            except OutOfTime:
                break
            finally:
                player.close()
            way = next_way(chooser)
    finally:
        await sandbox.aclose()
    return 0, {"outcomes": found, "cut": way is not None}


async def covered(text: str | bytes, scenario: Scenario) -> tuple[int, dict[str, Any]]:
    """Which ops a scenario did not reach."""
    from bot.domain.ids import place_of
    from bot.rehearse.lines import told

    catalog, _, world = surroundings(scenario)
    seen = examined(text, scenario, catalog, world)
    if seen.refused or seen.plan is None:
        return 2, {"refused": seen.reports()}
    code, report_ = await rehearse(text, scenario)
    reached = {place_of(op["path"]) for op in report_["ops"] if op["started"] is not None}
    every = [op for op, _ in seen.plan.walk()]
    return code, {
        "state": report_["state"],
        "ops": len(every),
        "unreached": [{"path": op.place, "told": told(op)} for op in every if op.place not in reached],
    }


def fresh(scenario: Scenario) -> Scenario:
    """The scenario with files of its own, so that one walk does not see what another saved."""
    from dataclasses import replace

    return replace(scenario, files=scenario.files.copy())
