"""Open each page of the built documentation in a browser and list what is wrong with it.

Errors of the console, links that lead nowhere, pictures without a description, pages without a heading or wider than a
phone, what cannot be used with the keyboard (on the pages `BY_KEYS`) and, with the path of axe-core's `axe.min.js`, all
of axe's rules. Needs `make docs` and Chromium:

    npm install --prefix .cache/axe axe-core
    .venv/bin/python tools/check_site.py .cache/axe/node_modules/axe-core/axe.min.js
"""

import collections
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from playwright.sync_api import sync_playwright

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
FACTS = """() => ({
  ids: [...document.querySelectorAll("[id], a[name]")].map((e) => e.id || e.name),
  links: [...document.querySelectorAll("a[href]")].map((e) => e.href),
  headings: document.querySelectorAll("h1").length,
  undescribed: [...document.images].filter((e) => !e.hasAttribute("alt")).map((e) => e.src),
})"""
AXE = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .map((v) => [v.id, v.impact, v.nodes.length, v.nodes[0].html.slice(0, 120)])"""
BY_KEYS = ("index.html", "gallery.html", "comparison.html", "api/vae.html", "search.html")
CONTROLS = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, .table-wrapper, pre")];
  const scrolls = (e) => e.matches("a, button, input, select") || e.scrollWidth > e.clientWidth;
  const inView = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().right > 0
    && e.getBoundingClientRect().left < innerWidth;
  window.controls = all.filter((e) => !e.disabled && e.type !== "hidden" && inView(e) && scrolls(e));
  return window.controls.length;
}"""
FOCUS = """() => {
  const e = document.activeElement, style = getComputedStyle(e);
  const box = getComputedStyle(e.closest("form, label") ?? e);
  const isMarked = style.outlineStyle !== "none" || style.boxShadow !== "none" || box.outlineStyle !== "none";
  return [window.controls.indexOf(e), isMarked, e.outerHTML.slice(0, 90)];
}"""


def by_keys(page) -> list[str]:
    """Return what Tab does not reach or does not mark, and whether Enter changes light and dark."""
    num_controls, seen, found = page.evaluate(CONTROLS), set(), []
    for _ in range(num_controls + 5):
        page.keyboard.press("Tab")
        place, is_marked, words = page.evaluate(FOCUS)
        if place >= 0 and not is_marked:
            found.append(f"keyboard: no mark of the focus: {words}")
        seen.add(place)
    missed = [place for place in range(num_controls) if place not in seen]
    words_of = "(places) => places.map((i) => window.controls[i].outerHTML.slice(0, 90))"
    missed = [words for words in page.evaluate(words_of, missed) if "back-to-top" not in words]  # comes and goes
    found += [f"keyboard: not reached: {words}" for words in missed]
    before = page.evaluate("localStorage.getItem('theme')")
    page.locator("button.theme-toggle:visible").first.press("Enter")
    if page.evaluate("localStorage.getItem('theme')") == before:
        found.append("keyboard: Enter does not change light and dark")
    page.evaluate("localStorage.clear()")
    return found


def opened_by_keys(page) -> list[str]:
    """Return whether the list of pages of a narrow window is not opened by Enter, or not closed by Escape."""
    page.locator("label.nav-overlay-icon button").press("Enter")
    drawer = page.locator(".sidebar-drawer")
    is_open = drawer.is_visible()
    page.keyboard.press("Escape")
    is_closed = not drawer.is_visible()
    return [] if is_open and is_closed else [f"keyboard: list of pages opened {is_open}, closed {is_closed}"]


def main(axe: str | None = None) -> int:
    """Check all pages; return the number of problems."""
    problems: list[tuple[str, str]] = []
    pages = sorted(SITE.rglob("*.html"))
    known: dict[Path, set[str]] = {}
    links: list[tuple[Path, str]] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport=DESK)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.route("http*://**", lambda route: route.abort())  # what a page needs must be part of the site
        for path in pages:
            name = str(path.relative_to(SITE))
            said.clear()
            page.set_viewport_size(DESK)
            page.goto(path.as_uri())
            facts = page.evaluate(FACTS)
            known[path] = set(facts["ids"])
            links += [(path, link) for link in facts["links"]]
            problems += [(name, f"console: {text}") for text in said]
            problems += [(name, f"no alt text: {source}") for source in facts["undescribed"]]
            if facts["headings"] != 1:
                problems.append((name, f"{facts['headings']} headings of the first level"))
            for colours in ("light", "dark") if axe else ():
                page.emulate_media(color_scheme=colours)
                page.add_script_tag(path=axe)
                problems += [(name, f"axe, {colours}: {found}") for found in page.evaluate(AXE)]
            if name in BY_KEYS:
                problems += [(name, text) for text in by_keys(page)]
            page.set_viewport_size(PHONE)
            if name in BY_KEYS:
                problems += [(name, f"phone, {text}") for text in [*by_keys(page), *opened_by_keys(page)]]
            if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                problems.append((name, "wider than a phone"))
        browser.close()
    problems += [
        (str(path.relative_to(SITE)), f"broken link: {link}") for path, link in links if _is_broken(link, known)
    ]
    for name, what in problems:
        print(f"{name}: {what}")
    kinds = collections.Counter(what.split(":")[0] for _, what in problems)
    print(f"{len(pages)} pages, {len(links):,} links: {len(problems)} problems {dict(kinds) or ''}")
    return len(problems)


def _is_broken(link, known):
    address, anchor = urldefrag(link)
    if urlsplit(address).scheme != "file":
        return False  # elsewhere
    path = Path(unquote(urlsplit(address).path))
    return not path.exists() or bool(anchor and path in known and unquote(anchor) not in known[path])


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
