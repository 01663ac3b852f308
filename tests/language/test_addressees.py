from datetime import UTC, datetime

import pytest

from bot.domain.catalog import Agent, Person, World
from bot.language.addressees import Addressee, AmbiguousAddressee, UnknownAddressee, find, looks_like

WORLD = World(
    now=datetime(2026, 3, 2, tzinfo=UTC),
    people=(
        Person(email="ana@acme.de", name="Ana"),
        Person(email="b.ruiz@acme.de", name="Bo Ruiz"),
        Person(email="m1@acme.de", name="Mara"),
        Person(email="m2@acme.de", name="mara"),
    ),
    roles={"leads": ("ana@acme.de",), "ana": ("m1@acme.de",)},
    agents=(Agent(name="Scout"),),
)


@pytest.mark.parametrize(
    ("text", "kind", "ref"),
    [
        ("ana@acme.de", "person", "ana@acme.de"),
        ("ANA@acme.de", "person", "ana@acme.de"),
        ("@Ana", "person", "ana@acme.de"),
        ("@b.ruiz", "person", "b.ruiz@acme.de"),
        ('@"bo ruiz"', "person", "b.ruiz@acme.de"),
        ("@bo", "person", "b.ruiz@acme.de"),
        ("@leads", "role", "leads"),
        ("role:Leads", "role", "leads"),
        ("agent", "agent", ""),
        ("agent:scout", "agent", "Scout"),
        ("line:U1", "conversation", "line:U1"),
        ("slack:C1/171", "conversation", "slack:C1/171"),
        ("#ops", "conversation", "#ops"),
    ],
)
def test_an_addressee_is_found(text: str, kind: str, ref: str) -> None:
    assert find(text, WORLD) == (Addressee(kind, ref),)  # type: ignore[arg-type]


def test_an_email_of_nobody_here_is_a_customers() -> None:
    assert find("mika@example.com", WORLD) == (Addressee("person", "mika@example.com", known=False),)


def test_two_people_of_one_name_are_both_listed() -> None:
    with pytest.raises(AmbiguousAddressee) as caught:
        find("@mara", WORLD)
    assert caught.value.emails == ["m1@acme.de", "m2@acme.de"]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("@anna", ["@ana"]),
        ("role:leeds", ["role:leads"]),
        ("agent:scot", ["agent:Scout"]),
        ("@xyzzy", []),
        ("ana", ["@ana"]),
    ],
)
def test_nobody_is_refused_with_the_nearest(text: str, near: list[str]) -> None:
    with pytest.raises(UnknownAddressee) as caught:
        find(text, WORLD)
    assert caught.value.near == near


def test_only_what_looks_like_an_addressee_is_one() -> None:
    assert all(
        map(looks_like, ["{who}", "{a.b[0]}", "a@b.de", "@ana", '@"A B"', "role:x", "agent:x", "web:room-1", "#ops"])
    )
    assert not any(map(looks_like, ["yes", "agent", "{a b}", "@", "#", "role:", "file:x", "a@b", "12:30"]))
