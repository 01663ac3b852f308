"""Names: unknown, not yet bound, not seen, reserved, repeated; what `after` follows."""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.plan import Op
from bot.language import cel
from bot.language.check.context import Checking, problem
from bot.language.problems import Problem, did_you_mean, nearest, spent
from bot.language.scope import BRANCHES, FIXED, Use, rebinders

JQ_WORDS = frozenset(
    [
        "and",
        "as",
        "catch",
        "def",
        "elif",
        "else",
        "end",
        "foreach",
        "if",
        "import",
        "include",
        "label",
        "module",
        "or",
        "reduce",
        "then",
        "try",
        "__loc__",
        "ENV",
    ]
)
"""Words of jq that cannot be names."""

_INSIDE = {
    "item": "`item` is there only inside a `core.map`",
    "index": "`index` is there only inside a `core.map`",
    "last": "`last` is there only inside a `core.repeat`",
    "it": "`it` is there only in the prompt of `each`",
    "event": "`event` is there only in the `where` of `expect`",
}


def check(c: Checking) -> Iterator[Problem]:
    yield from _ids(c)
    for place, op in c.scopes.ops.items():
        told: set[str] = set()
        for use in c.scopes.uses(place):
            if use.how == "after":
                yield from _after(c, place, use)
                continue
            if use.name in told:
                continue
            found = _use(c, place, op, use)
            if found is not None:
                if found.fix is None:
                    told.add(use.name)
                yield found


def _use(c: Checking, place: str, op: Op, use: Use) -> Problem | None:
    binding = c.scopes.resolve(place, use.name, use.field)
    if binding.kind == "fixed":
        if use.name == "ops":
            return _record(c, place, use)
        if use.name == "customer" and c.world.customer is None and "customer" not in c.held and not c.plan.on:
            return None if use.optional else problem(c.use(place, use), "unknown-name", "this job has no `customer`")
        return None
    if binding.kind != "outside" or (use.name in c.held and not binding.unseen):
        return None
    if use.how == "cel" and use.name in cel.TYPE_NAMES:
        return None
    if binding.unseen:
        return problem(
            c.use(place, use),
            "name-unseen",
            f"`{use.name}` has no value inside its own `{_branch(c, place, use.name)}` until it is bound there",
            f"its record is `ops.{use.name}`",
        )
    return _later(c, place, use) or _inner(c, place, use) or _unknown(c, place, use)


def _branch(c: Checking, place: str, name: str) -> str:
    scope = c.scopes.scope_of.get(place)
    while scope is not None:
        if scope.branch and scope.owner is not None and scope.owner.id == name:
            return scope.kind
        scope = scope.parent
    return "onMiss"


def _later(c: Checking, place: str, use: Use) -> Problem | None:
    """An op below, in this region or one around it, binds the name."""
    scope = c.scopes.scope_of[place]
    at = c.scopes.position[place]
    around: dict[str, int] = {}
    while scope is not None:
        around[scope.region.place] = at
        at, scope = scope.at, scope.parent
    for binder in c.scopes.binders(use.name):
        spec = c.catalog.get(c.scopes.ops[binder].op)
        limit = around.get(c.scopes.scope_of[binder].region.place)
        if limit is None or binder == place or c.scopes.position[binder] <= limit or (spec and not spec.binds):
            continue
        start, end = c.ident(binder)
        line = c.line(binder)
        return problem(
            c.use(place, use),
            "used-before-bound",
            f"`{use.name}` is used above the op that binds it",
            f"move this op below line {line}" if line is not None else None,
            also=((start, end, "bound here"),),
        )
    return None


def _inner(c: Checking, place: str, use: Use) -> Problem | None:
    """An op inside a region that is not seen from here binds the name, or only some regions have it."""
    for binder in c.scopes.binders(use.name):
        spec = c.catalog.get(c.scopes.ops[binder].op)
        owner = c.scopes.scope_of[binder].owner
        if binder == place or (spec is not None and not spec.binds):
            continue
        if owner is None:
            continue
        start, end = c.ident(binder)
        value = (
            f"what the `{c.spelt(owner.place)}` gives is `{owner.id}`"
            if owner.id
            else (f"give the `{c.spelt(owner.place)}` an id and use that")
        )
        return problem(
            c.use(place, use),
            "name-unseen",
            f"`{use.name}` is bound inside `{c.spelt(owner.place)}`{c.on_line(owner.place)} and not seen outside it",
            value,
            also=((start, end, "bound here"),),
        )
    if use.name in _INSIDE:
        return problem(c.use(place, use), "name-unseen", _INSIDE[use.name])
    return None


def _unknown(c: Checking, place: str, use: Use) -> Problem:
    span = c.use(place, use)
    if c.plan.sealed and (use.name in c.world.bindings or use.name == "customer"):
        return problem(
            span,
            "unknown-name",
            f"a program with `inputs` does not see the job's `{use.name}`",
            "declare it under `inputs`",
        )
    near = nearest(use.name, _candidates(c, place, use))
    message = f"nothing above binds `{use.name}`"
    if not near:
        return problem(span, "unknown-name", message)
    mend = did_you_mean(near) or ""
    if len(near) == 1:
        binding = c.scopes.resolve(place, near[0], use.field)
        if binding.kind == "op":
            mend = f"{mend[:-1]}{c.on_line(binding.places[0])}?"
    return problem(span, "unknown-name", message, mend, near[0] if len(near) == 1 else None)


def _candidates(c: Checking, place: str, use: Use) -> Iterator[str]:
    yield from (name for name, _ in c.scopes.visible(place, use.field))
    yield from c.held
    yield from FIXED
    if c.world.customer is not None and not c.plan.sealed:
        yield "customer"
    op = c.scopes.ops[place].op
    if op == "expect" and use.field == "where":
        yield "event"
    if op == "each" and use.field == "prompt":
        yield "it"


def _record(c: Checking, place: str, use: Use) -> Problem | None:
    if len(use.path) < 2 or not isinstance(use.path[1], str) or use.how == "jq":
        return None
    name = use.path[1]
    if c.scopes.record(place, name, use.field):
        return None
    start, _ = c.use(place, use)
    node = c.node(place, use.field, *use.keys)
    if node is not None and node.kind == "text":
        leads = (f".{name}", f'["{name}', f"['{name}")
        found = [at + len(lead) - len(name) for lead in leads if (at := node.value.find(lead, use.start)) >= 0]
        start = node.offset(min(found)) if found else start
    span = (start, start + len(name))
    near = nearest(name, _ids_above(c, place))
    return problem(
        span, "unknown-name", f"no op above is called `{name}`", did_you_mean(near), near[0] if len(near) == 1 else None
    )


def _ids_above(c: Checking, place: str) -> list[str]:
    if spent():
        return []
    return [op.id for other, op in c.scopes.ops.items() if op.id and c.scopes.record(place, op.id) and other != place]


def _after(c: Checking, place: str, use: Use) -> Iterator[Problem]:
    written = use.name
    name = written.removesuffix("?")
    if c.scopes.follows(place, written):
        return
    span = c.use(place, use)
    binding = c.scopes.resolve(place, name)
    if binding.unseen:
        yield problem(
            span,
            "after-unknown",
            f"`{name}` has no value inside its own `{_branch(c, place, name)}`",
            f"write `{name}?` to follow it whatever became of it",
        )
        return
    if binding.kind in ("input", "fixed", "item", "index", "last") or name in c.held:
        yield problem(span, "after-unknown", f"`after` follows an op; `{name}` is there from the start")
        return
    later = _later(c, place, use._replace(path=(name,)))
    if later is not None:
        yield problem(
            span, "used-before-bound", f"`after` names `{name}`, which stands below", later.mend, also=later.also
        )
        return
    target = c.scopes.placed(name)
    if target is not None:
        line = c.line(target)
        where = f"`{name}`{f' (line {line})' if line else ''}"
        yield problem(span, "after-unknown", f"{where} does not stand above in this region or one around it")
        return
    inner = _inner(c, place, use._replace(path=(name,)))
    if inner is not None and inner.also:
        yield problem(span, "name-unseen", inner.message, inner.mend, also=inner.also)
        return
    near = nearest(name, _ids_above(c, place))
    mark = written[len(name) :]
    fix = near[0] + mark if len(near) == 1 else None
    node = c.node(place, "after", *use.keys) or c.node(place, "after")
    if fix is not None and node is not None and not node.markdown and node.offsets is not None:
        span = (node.offset(0), node.offset(len(written)))
    yield problem(span, "after-unknown", f"`after` names no op above: `{name}`", did_you_mean(near), fix)


def _ids(c: Checking) -> Iterator[Problem]:
    inputs = {i.name for i in c.plan.inputs or ()}
    for name in inputs & FIXED:
        yield problem(c.literal(name), "id-reserved", f"`{name}` is a name of the language, so it is no input")
    for place, op in c.scopes.ops.items():
        if op.id is None:
            continue
        span = c.ident(place)
        if op.id in FIXED:
            yield problem(
                span,
                "id-reserved",
                f"`{op.id}` is a name that the language binds itself, so it is no id",
                f"call it something else, such as `my_{op.id}`",
            )
        elif op.id in cel.RESERVED or op.id in JQ_WORDS:
            yield problem(
                span,
                "id-reserved",
                f"`{op.id}` is a word of the expressions, so it is no id",
                f"call it something else, such as `{op.id}_`",
            )
        elif op.id in inputs:
            yield problem(span, "id-repeated", f"`{op.id}` is an input already, so it is no id")
        else:
            yield from _repeated(c, place, op)
    yield from _rebound(c)


def _repeated(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    """The same id above, where both are seen."""
    assert op.id is not None
    scope = c.scopes.scope_of[place]
    at = c.scopes.position[place]
    while scope is not None:
        for position, places in scope.ids.get(op.id, ()):
            if position < at:
                start, end = c.ident(places[0])
                yield problem(
                    c.ident(place),
                    "id-repeated",
                    f"`{op.id}` is an id already{c.on_line(places[0])}",
                    "give one of the two another id",
                    also=((start, end, "first here"),),
                )
                return
        if scope.branch and scope.owner is not None and scope.owner.id == op.id:
            return
        at, scope = scope.at, scope.parent


def _rebound(c: Checking) -> Iterator[Problem]:
    """A name bound again from within a map or a parallel of its own `onMiss`."""
    for place, op in c.scopes.ops.items():
        if op.id is None or not any(kind in BRANCHES for kind, _ in op.inner()):
            continue
        allowed = {again.place for again in rebinders(op)}
        for other in c.scopes.binders(op.id):
            if other.startswith((f"{place}.onMiss.", f"{place}.onError.")) and other not in allowed:
                owner = _gatherer(c, other)
                yield problem(
                    c.ident(other),
                    "rebound-in-a-map",
                    f"`{op.id}` cannot be bound again inside a `{owner}`: every item would bind its own",
                    f"bind `{op.id}` below the `{owner}`, from its value",
                )


def _gatherer(c: Checking, place: str) -> str:
    scope = c.scopes.scope_of[place]
    while scope is not None and scope.owner is not None:
        if scope.owner.op in ("core.map", "flow.parallel") and not scope.branch:
            return c.spelt(scope.owner.place)
        scope = scope.parent
    return "core.map"
