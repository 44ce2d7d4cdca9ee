"""Run the notebooks of docs/notebooks from top to bottom, as a stranger would.

Run by ``.ci/run`` in a virtual environment of its own:

    python3 -m venv notebooks
    notebooks/bin/python -m pip install . -r tests/notebooks/requirements.txt
    notebooks/bin/python tests/notebooks/check_notebooks.py

Each must run without an error or a word on stderr beside the one about compiling, show what it
evaluates as HTML, and hold no outputs in git: what a notebook shows is made by whoever runs it, so
that it is never older than the code, and a change is read as a change.  ``--out DIR`` writes each
with its outputs, as ``.ipynb`` and as ``.html``, for a site or to look at.  Prints a line for each
notebook, and exits with 1 if one failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
#: Seconds that a cell may take, compiling included.
PATIENCE = 300
#: Bytes of a notebook without outputs.
MOST_BYTES = 200_000
#: What `planners` says while it compiles.
COMPILING = "compiling kernels"
#: What stands in a cell that shows a picture.
DRAWS = re.compile(r"plt\.show\(\)|result\.plot\(")


def faults_before(notebook: Any) -> Iterator[str]:
    """Yield what is wrong with a notebook as it lies in git."""
    for place, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count is not None):
            yield f"cell {place} has outputs: clear them before committing"


def faults_after(notebook: Any) -> Iterator[str]:
    """Yield what is wrong with what a notebook showed when it ran."""
    for place, cell in enumerate(notebook.cells, start=1):
        outputs = cell.get("outputs", ())
        draws = cell.cell_type == "code" and DRAWS.search(cell.source)
        if draws and not any("image/png" in output.get("data", ()) for output in outputs):
            yield f"cell {place} draws, and shows no picture"
        for output in outputs:
            if output.output_type == "stream" and output.name == "stderr":
                lines = [line for line in output.text.splitlines() if line.strip()]
                others = [line for line in lines if not line.startswith(COMPILING)]
                if others:
                    yield f"cell {place} wrote to stderr: {others[0]}"
            # What ours evaluate are models, environments, wrapped ones among them, and results.
            if output.output_type == "execute_result" and "text/html" not in output.data:
                yield f"cell {place} shows no HTML: {output.data.get('text/plain')}"


def run(path: Path, out: Path | None) -> list[str]:
    """Run a notebook and return what is wrong with it.

    Parameters
    ----------
    path : Path
    out : Path, optional
        Where it goes with its outputs.
    """
    notebook: Any = nbformat.read(path, as_version=4)
    faults = list(faults_before(notebook))
    if path.stat().st_size > MOST_BYTES:
        faults.append(f"{path.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        # Without its warning that other users of the machine may listen.
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return [*faults, str(error).strip()]
    faults += faults_after(notebook)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        # What it says of compiling is not of the notebook.
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
                cell.metadata.pop("execution", None)
        nbformat.write(notebook, out / path.name)
        page, _ = HTMLExporter().from_notebook_node(notebook)
        (out / path.with_suffix(".html").name).write_text(page, encoding="utf-8")
    return faults


def main() -> int:
    """Run the notebooks and return how the process should exit."""
    parser = argparse.ArgumentParser(description="Run the notebooks of docs/notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="files (default: all)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write them there with outputs")
    arguments = parser.parse_args()
    notebooks = arguments.notebooks or sorted(FOLDER.glob("*.ipynb"))
    if not notebooks:
        parser.error(f"there are no notebooks in {FOLDER}")
    for path in notebooks:
        if not path.is_file():
            parser.error(f"there is no file {path}")
    failed = 0
    for path in notebooks:
        began = time.perf_counter()
        faults = run(path.resolve(), arguments.out)
        seconds = time.perf_counter() - began
        failed += bool(faults)
        print(f"{'FAILED' if faults else 'ok'}  {path.name} ({seconds:.1f} s)", flush=True)
        for fault in faults:
            print(f"    {fault}", flush=True)
    print(f"{len(notebooks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
