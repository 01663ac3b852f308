"""Texts of the plan as people write them."""

from bot.server.phrases import plain


def test_a_reference_ends_where_its_path_ends():
    assert plain("Seated, frame ${seated.event.frame}.") == "Seated, frame {seated.event.frame}."
    assert plain("See you at $pick.event.text.") == "See you at {pick.event.text}."
    assert plain("It costs $$5, $name?") == "It costs $5, {name}?"
