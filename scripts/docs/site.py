"""Build the site: the pages of docs/, the notebooks, a gallery, the reference of docstrings.

    python -m pip install --editable ".[docs]"
    python scripts/docs/site.py                # writes build/site/html

Sources are put together in build/site/source: the pages as they lie in docs/, with links to files
that are no pages leading to copies of those; nothing is written into docs/.  Warnings are errors,
and all internal links and anchors of what was built are followed (scripts/docs/_links.py).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BUILD = ROOT / "build" / "site"
HERE = Path(__file__).resolve().parent

#: Where pages from outside docs/, and the first one, are on the site.
ELSEWHERE = {
    "README.md": "readme.md",
    "docs/README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
#: Pages below a page, in the order in which they are listed.
CHILDREN = {
    "docs/models.md": "docs/models",
    "docs/environments/README.md": "docs/environments",
    "docs/notebooks/README.md": "docs/notebooks",
}
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~)")
_RECORDING = "![Mega-states forming in a maze](aggregation.gif)"
_FRAME = """\
<iframe class="recording" src="_static/aggregation.html#play"
 title="Mega-states forming in a maze: a slider over the iterations"></iframe>"""


class PageError(Exception):
    """A page cannot be built; the message says why."""


def main() -> int:
    """Run the script and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.parse_args()
    if importlib.util.find_spec("sphinx") is None:
        print('error: the site needs Sphinx: pip install -e ".[docs]"', file=sys.stderr)
        return 1
    # Pages of an earlier build that are gone would be found, and links to them pass.
    shutil.rmtree(BUILD, ignore_errors=True)
    started = time.monotonic()
    print("Putting the pages together and running the notebooks: a minute or two.", flush=True)
    try:
        assemble(BUILD / "source")
    except PageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    out = BUILD / "html"
    code = build(BUILD / "source", out)
    if code:
        return code
    check = runpy.run_path(str(HERE / "_links.py"))["broken"]
    broken = list(check(out))
    for line in broken:
        print(f"error: {line}", file=sys.stderr)
    if not broken:
        seconds = time.monotonic() - started
        print(f"{out / 'index.html'}: all links lead somewhere; {seconds:.0f} s")
    return 1 if broken else 0


def build(source: Path, out: Path) -> int:
    """Run Sphinx and return its exit code; warnings are errors."""
    # Kernels of notebooks say on stderr that they listen on this machine.
    profile = BUILD / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n", "utf-8")
    environment = {
        **os.environ,
        "IPYTHONDIR": str(BUILD / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        "SDL_VIDEODRIVER": "dummy",
        "MPLBACKEND": "Agg",
    }
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    command += ["-d", str(BUILD / "doctrees"), str(source), str(out)]
    return subprocess.run(command, env=environment, check=False).returncode


def assemble(source: Path) -> None:
    """Put the sources of the site together."""
    shutil.rmtree(source, ignore_errors=True)
    (source / "_static").mkdir(parents=True)
    for path in sorted((HERE / "_site" / "static").iterdir()):
        shutil.copy2(path, source / "_static")
    conf = (HERE / "_site" / "conf.py").read_text(encoding="utf-8")
    environments = runpy.run_path(str(HERE / "environments.py"))
    (source / "conf.py").write_text(
        f"{conf}\npages_of_classes = {environments['pages_of_classes']()!r}\n", encoding="utf-8"
    )
    runpy.run_path(str(HERE / "aggregation.py"))["record"](source / "_static" / "aggregation.html")
    shutil.copytree(DOCS / "gallery", source / "gallery_examples")
    _reference(source / "reference")
    places = dict(_pages())
    for path, place in places.items():
        target = source / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            shutil.copy2(path, target)
        else:
            target.write_text(_page(path, places, source), encoding="utf-8")


def _pages() -> Iterator[tuple[Path, str]]:
    """Yield every page, and its place on the site."""
    for name, place in ELSEWHERE.items():
        if name != "README.md":
            yield ROOT / name, place
    for path in sorted(DOCS.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        inside = path.relative_to(DOCS)
        if (
            path.suffix in (".md", ".ipynb")
            and name not in ELSEWHERE
            and inside.parts[0] != "gallery"
        ):
            yield path, inside.as_posix()


def _page(path: Path, places: dict[Path, str], source: Path) -> str:
    """Return a page as the site has it: links changed, with what is below it."""
    name = path.relative_to(ROOT).as_posix()
    lines, fenced = [], False
    for line in path.read_text(encoding="utf-8").splitlines():
        fenced ^= bool(_FENCE.match(line))
        lines.append(line if fenced else _LINK.sub(lambda m: _link(m, path, places, source), line))
    text = "\n".join([*lines, ""])
    if name == "docs/README.md":
        return _first_page(text, source)
    if name in CHILDREN:
        own = [p for p in places if p.is_relative_to(ROOT / CHILDREN[name]) and p != path]
        text += _tree([_between(places[path], places[p]) for p in _as_listed(path, own)])
    return text


def _link(match: re.Match[str], path: Path, places: dict[Path, str], source: Path) -> str:
    """Return a link as the site has it."""
    words, target = match.groups()
    if re.match(r"[a-z]+:|#", target):
        return match[0]
    target, _, anchor = target.partition("#")
    found = Path(os.path.normpath(path.parent / target))
    here = places[path]
    if found in places:
        return f"{words}({_between(here, places[found])}{'#' * bool(anchor)}{anchor})"
    if found == ROOT / "README.md":
        return f"{words}({_between(here, 'index.md')})"
    if found == DOCS / "gallery":
        return f"{words}({_between(here, 'gallery/index.rst')})"
    if not found.is_file():
        raise PageError(f"{path.relative_to(ROOT)} links to {target}, which is no file")
    copy = Path("files") / found.relative_to(ROOT)
    (source / copy.parent).mkdir(parents=True, exist_ok=True)
    shutil.copy2(found, source / copy)
    return f"{words}({_between(here, copy.as_posix())})"


def _between(here: str, there: str) -> str:
    return Path(os.path.relpath(there, Path(here).parent)).as_posix()


def _as_listed(path: Path, pages: list[Path]) -> list[Path]:
    """Return pages in the order in which a page first links to them; those it forgets, last."""
    text = path.read_text(encoding="utf-8")
    targets = [
        Path(os.path.normpath(path.parent / t.partition("#")[0])) for _, t in _LINK.findall(text)
    ]
    return sorted(pages, key=lambda page: targets.index(page) if page in targets else len(targets))


def _tree(names: list[str], title: str = "") -> str:
    entries = [re.sub(r"\.(md|ipynb|rst)$", "", name) for name in names]
    return "\n".join(
        ["", "```{toctree}", ":hidden:", *([title] if title else []), "", *entries, "```", ""]
    )


def _first_page(text: str, source: Path) -> str:
    """Return the first page, with the recording; sections of several pages become pages."""
    picture = _RECORDING.replace("aggregation.gif", "files/docs/aggregation.gif")
    if text.count(picture) != 1:
        raise PageError(f"docs/README.md must have once: {_RECORDING}")
    text = text.replace(picture, _FRAME)
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    tops = []
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        targets = [t.partition("#")[0] for _, t in _LINK.findall(body)]
        targets = list(dict.fromkeys(t for t in targets if t.endswith((".md", ".ipynb"))))
        if len(targets) == 1:
            tops += targets
            continue
        if title == "Gallery":
            tops.append("gallery/index")
            continue
        name = title.lower().replace(" ", "_") + "_pages"
        (source / f"{name}.md").write_text(
            f"# {title}\n\n{body.strip()}\n{_tree(targets)}", encoding="utf-8"
        )
        tops.append(name)
    tops.insert(-1, "reference/index")
    return f"{text}{_tree(tops)}"


def _reference(folder: Path) -> None:
    """Write the pages of the reference."""
    made = runpy.run_path(str(HERE / "_reference.py"))
    folder.mkdir(parents=True)
    found = list(made["pages"]())
    for page in found:
        (folder / f"{page.name}.rst").write_text(made["page_text"](page), encoding="utf-8")
    (folder / "index.md").write_text(made["index_text"](found), encoding="utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        sys.exit(130)
