"""Links between pages lead somewhere as they stand, on a code host as in a checkout."""

from __future__ import annotations

import os
import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    found: Counter[str] = Counter()
    names = set()
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for heading in re.findall(r"^#{1,6} (.*)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", FENCED.sub("", page.read_text(encoding="utf-8")))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = Path(os.path.normpath(page.parent / path)) if path else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found), target


def test_every_page_is_listed() -> None:
    """From docs/README.md, or from a page that it lists."""
    first = ROOT / "docs" / "README.md"
    found, todo = set(), [first]
    while todo:
        page = todo.pop()
        if page in found or page.suffix != ".md":
            continue
        found.add(page)
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            path = Path(os.path.normpath(page.parent / target.partition("#")[0]))
            if path.is_file():
                todo.append(path)
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} <= found


def site(tmp_path: Path, **pages: str) -> list[str]:
    """Return what is broken in a site of these pages."""
    broken: Any = runpy.run_path(str(ROOT / "scripts" / "docs" / "_links.py"))["broken"]
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    return list(broken(tmp_path))


def test_the_check_of_the_site_finds_what_is_broken(tmp_path: Path) -> None:
    whole = '<h1 id="top-of-b">b</h1><a href="a.html">a</a><a href="https://example.org/x">out</a>'
    assert site(tmp_path, a='<a href="b.html#top-of-b">b</a><a href="#">here</a>', b=whole) == []
    broken = site(
        tmp_path,
        a='<a href="b.html#gone"></a><img src="gone.png"><a href="../x"></a><a href="#no"></a>',
    )
    assert len(broken) == 4
    assert "no such anchor" in broken[0]
    assert "gone.png" in broken[1]
    assert "out of the site" in broken[2]
    assert "#no" in broken[3]
    with pytest.raises(ValueError, match="no pages"):
        site(tmp_path / "empty")


def test_every_public_name_is_in_the_reference_once() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "docs" / "_reference.py"))
    pages = list(made["pages"]())
    listed = Counter((page.module, name) for page in pages for name in page.names)
    assert set(listed.values()) == {1}
    import aggmaze
    import planners

    for package in (aggmaze, planners):
        for name in package.__all__:
            assert listed[package.__name__, name] == 1, name
    for page in pages:
        assert made["page_text"](page).startswith(page.title)
