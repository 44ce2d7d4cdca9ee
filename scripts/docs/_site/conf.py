"""Sphinx's configuration of the site; scripts/docs/site.py copies it beside the pages."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import aggmaze

project = "aggmaze"
author = "The aggmaze developers"
project_copyright = author
version = release = aggmaze.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
# What the gallery offers for download beside its pages is no page.
exclude_patterns = ["gallery_examples", "gallery/*.ipynb", "gallery/*.zip"]

# Single backticks in docstrings are names of the project, where they are names of anything.
default_role = "py:obj"
autodoc_typehints = "none"  # the docstrings have them, with shapes
autodoc_member_order = "bysource"
autosummary_generate = False
autosummary_imported_members = True
napoleon_google_docstring = False
napoleon_use_rtype = False

# The anchors of headings are those of code hosts.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery_examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "write_computation_times": False,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "aggmaze"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "aggmaze"},
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "getting_started": []}

# A public name, with its call.
_NAME = re.compile(r"((?:planners|aggmaze)(?:\.\w+)+)(\(.*\))?")


class NamesInPages(SphinxTransform):
    """Link names like `planners.solve` on the pages to their reference."""

    default_priority = 9

    def apply(self, **kwargs: Any) -> None:
        """Wrap them in references, which stay what they are where there is none."""
        if self.env.doc2path(self.env.docname).suffix == ".rst":
            return  # docstrings say themselves what is a reference
        for literal in list(self.document.findall(nodes.literal)):
            name = _NAME.fullmatch(literal.astext())
            if name is None or isinstance(literal.parent, nodes.reference):
                continue
            reference = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=name[1], refwarn=False
            )
            reference["refdoc"] = self.env.docname
            literal.replace_self(reference)
            reference += literal


def shorten_markdown(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Of docstrings in Markdown, which are pages of their own, leave the first paragraph.

    Environments have them, as Gymnasium's do.
    """
    if not any(line.startswith("## ") for line in lines):
        return
    paragraph = lines[: lines.index("")] if "" in lines else list(lines)
    page = app.config.pages_of_classes.get(name.rsplit(".", 1)[-1])
    if page is not None:
        paragraph += ["", f"All of it, with a picture: :doc:`/environments/{page}`."]
    lines[:] = [line.replace("`", "``") if ":doc:" not in line else line for line in paragraph]


def shorten_defaults(
    app: Sphinx,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Show no addresses of objects in signatures."""
    if signature:
        signature = re.sub(r"<function (\w+)[^>]*>", r"\1", signature)
    return signature, returned


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.add_config_value("pages_of_classes", {}, "env")
    app.add_transform(NamesInPages)
    app.connect("autodoc-process-docstring", shorten_markdown, priority=100)
    app.connect("autodoc-process-signature", shorten_defaults)
