"""Follow the internal links of a built site, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Where a page links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, and what it is called."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src", "poster"):
                self.targets.append(value)


def broken(folder: Path) -> Iterator[str]:
    """Yield a line for each link of a site that leads nowhere.

    Parameters
    ----------
    folder : Path
        With the HTML.

    Yields
    ------
    str
        Which page links to what, and what is missing.

    Raises
    ------
    ValueError
        If there is no page at all.
    """
    folder = folder.resolve()
    # Below _static there are templates of the theme, and pages that stand by themselves.
    static = folder / "_static"
    found_pages = [p for p in sorted(folder.rglob("*.html")) if not p.is_relative_to(static)]
    pages = {path: _Page(path) for path in found_pages}
    if not pages:
        raise ValueError(f"there are no pages in {folder}")
    for path, page in pages.items():
        for target in dict.fromkeys(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            found = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if found.is_dir():
                found /= "index.html"
            place = path.relative_to(folder)
            if not found.is_relative_to(folder):
                yield f"{place} links to {target}, out of the site"
            elif not found.is_file():
                yield f"{place} links to {target}, and there is no such file"
            elif parts.fragment and found in pages:
                anchor = unquote(parts.fragment)
                # Scripts and browsers know these without an element.
                if anchor not in pages[found].anchors and anchor not in ("", "top"):
                    yield f"{place} links to {target}, and there is no such anchor"
