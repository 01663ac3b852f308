"""A room in a real browser, and what every page of it must be: no faults, named controls, no sideways scrolling,
visible focus, text that can be read."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.wiring import Product
from store import runs

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("WAITON_BROWSER") == "required"
BROWSER = [
    pytest.mark.anyio,
    pytest.mark.browser,
    pytest.mark.skipif(
        not CHROMIUM and not REQUIRED, reason="chromium is not here; WAITON_BROWSER=required fails instead"
    ),
]
ARGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
]
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


@dataclass
class Room:
    product: Product
    url: str
    browser: Any
    faults: list[str] = field(default_factory=list)
    """What the consoles said: faults, warnings, refusals of the content security policy."""

    @property
    def broken(self) -> list[str]:
        """What the consoles said besides that a page was refused, which a test has asked for."""
        return [
            said
            for said in self.faults
            if not said.startswith("Failed to load resource: the server responded with a status of 4")
        ]

    async def person(self, email: str, **options: Any) -> Any:
        """A page of somebody who is logged in, in a browser of their own."""
        page = await self.stranger(**options)
        await page.goto(await self.product.desk.login_link(f"{email}@acme.de"))
        return page

    async def stranger(self, **options: Any) -> Any:
        """A page of nobody."""
        context = await self.browser.new_context(**{"viewport": WIDE, **options})
        page = await context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.faults.append(str(e)))
        return page

    async def job(self, ident: str, title: str) -> str:
        now = self.product.clock.now()
        await self.product.committer.write(lambda tx: runs.add_job(tx, ident, title, f"web:{ident}", now))
        return f"{self.url}/jobs/{ident}"

    async def run(self, script: str, *, by: str = "bo@acme.de", job: str = "pilot") -> str:
        started = await self.product.desk.start(script, by=by, job=job)
        assert started.run, started.seen.reports()
        return started.run


CONTROLS = "button, a[href], summary, input:not([type=hidden]), select, textarea"
UNNAMED = f"""() => [...document.querySelectorAll('{CONTROLS}')]
  .filter((el) => {{
    const label = el.labels && [...el.labels].map((l) => l.textContent).join('');
    const by = (el.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean).map((id) => document.getElementById(id).textContent).join('');
    return !(el.getAttribute('aria-label') || by || label || (/^(BUTTON|A|SUMMARY)$/.test(el.tagName) && el.textContent) || '').trim();
  }}).map((el) => el.outerHTML.slice(0, 200))"""
WIDER = """() => {
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over <= 0) return [];
  return [...document.querySelectorAll('body *')].filter((el) => el.getBoundingClientRect().right > innerWidth + 1).map((el) => el.outerHTML.slice(0, 120)).slice(0, 5).concat(`by ${over}`);
}"""
TWICE = "() => { const ids = [...document.querySelectorAll('[id]')].map((el) => el.id); return ids.filter((id, i) => ids.indexOf(id) !== i); }"
FAINT = """() => {
  const rgba = (said) => {
    const n = (said.match(/-?[\\d.]+(e-?\\d+)?/g) || []).map(Number);
    return said.startsWith('color(srgb') ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = (el) => {
    const chain = [];
    for (let at = el; at; at = at.parentElement) chain.push(rgba(getComputedStyle(at).backgroundColor));
    return chain.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (c) => [0, 1, 2].map((i) => c[i] / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement, style = getComputedStyle(el);
    if (!walk.currentNode.data.trim() || !el.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (el.closest('[aria-hidden=true], script, style, option, .sr, [disabled], .busy, .skip')) continue;
    let solid = 1;
    for (let at = el; at; at = at.parentElement) solid *= Number(getComputedStyle(at).opacity);
    const under = ground(el), ink = rgba(style.color);
    const top = over([...ink.slice(0, 3), ink[3] * solid], under);
    const [a, b] = [light(top), light(under)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 600);
    if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  return found;
}"""
FOCUS = """() => {
  const el = document.activeElement;
  if (!el || el === document.body) return null;
  const seen = (at) => { const s = getComputedStyle(at); return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0); };
  const box = el.closest('.box, .typed');
  return seen(el) || (box && box.matches(':focus-within')) ? '' : el.outerHTML.slice(0, 160);
}"""


async def sound(page: Any, name: str, *, tabs: int = 12) -> None:
    """Whether a page is as every page must be; `tabs`: so many stops of the keyboard are looked at."""
    await page.wait_for_load_state("load")
    for what, script in (
        ("scrolls sideways", WIDER),
        ("has controls without a name", UNNAMED),
        ("has an id twice", TWICE),
        ("has text that is too faint", FAINT),
    ):
        found = await page.evaluate(script)
        assert found == [], f"{name} {what}: {found}"
    for _ in range(tabs):
        await page.keyboard.press("Tab")
        unseen = await page.evaluate(FOCUS)
        if unseen is None:
            break
        assert unseen == "", f"{name} does not show where the focus is: {unseen}"
