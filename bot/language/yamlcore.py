"""YAML 1.2's core schema for PyYAML: `on` and `yes` are texts, `18:30` and `2026-06-08` too."""

from __future__ import annotations

import re

import yaml


class Core(yaml.SafeLoader):
    """Scalars of YAML 1.2: no `yes`, no sexagesimals, no dates."""


Core.yaml_implicit_resolvers = {}
for _tag, _pattern, _firsts in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    ("null", r"(?:null|Null|NULL|~|)\Z", ["n", "N", "~", ""]),
    ("int", r"(?:[-+]?[0-9]{1,300}|0o[0-7]+|0x[0-9a-fA-F]+)\Z", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?\Z", "-+.0123456789"),
):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_firsts))
