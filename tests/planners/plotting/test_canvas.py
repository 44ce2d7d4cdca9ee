"""Figures, their files, and what they take from a style."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from matplotlib import rcParams, style
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import planners
from aggmaze import TabularMDP
from planners.plotting import (
    check_matplotlib,
    figure_format,
    figure_of,
    plot_convergence,
    plot_graph,
    plot_values,
    save_figure,
)


@pytest.mark.parametrize("name", ["default", "dark_background"])
def test_what_is_on_the_page_has_the_colours_of_the_style(name: str) -> None:
    model = TabularMDP.from_batched_function(
        4, 1, lambda s, a: (1.0, np.maximum(s - 1, 0), np.where(s == 0, np.inf, 1.0))
    )
    layout = gym.make("TerrainMaze-v0", shape=(12, 9)).get_wrapper_attr("layout")
    result = planners.solve(model, gamma=0.9, method="value_iteration", certify="every")
    with style.context(name):
        ink, page = (to_rgba(rcParams[key]) for key in ("text.color", "figure.facecolor"))
        drawn = [
            plot_values(layout, np.arange(108.0), title="values"),
            plot_values(model, np.arange(4.0), title="bars"),
            plot_graph(model, np.arange(4.0), title="graph"),
            plot_convergence(result, title="convergence"),
        ]
    for axes in drawn:
        assert to_rgba(figure_of(axes).get_facecolor()) == page
        for words in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels()):
            assert to_rgba(words.get_color()) == ink
    # What is on the map does not follow: dark words with a light seam.
    values, _, graph, _ = drawn
    for words in values.texts:
        assert np.mean(to_rgba(words.get_color())[:3]) < 0.3
        assert words.get_path_effects()
    # Names are seen on their discs.
    names = [text for text in graph.texts if text.get_text()]
    discs = graph.collections[0]
    discs.update_scalarmappable()
    for words, disc in zip(names, np.asarray(discs.get_facecolor()), strict=True):
        light = [np.dot(color[:3], [0.3, 0.6, 0.1]) for color in (to_rgba(words.get_color()), disc)]
        assert abs(light[0] - light[1]) > 0.3
    assert (values.get_xlabel().split(";")[0], values.get_ylabel()) == ("x (cells)", "y (cells)")


def test_formats(tmp_path: Path) -> None:
    figure = Figure()
    for suffix, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        target = tmp_path / f"figure.{suffix}"
        save_figure(figure, target)
        assert target.read_bytes().startswith(magic)
    for name in ("figure.jpg", "figure"):
        with pytest.raises(ValueError, match=name):
            figure_format(name)


def test_a_picture_that_fails_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "figure.png"
    target.write_bytes(b"old")

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("disk full")

    figure = Figure()
    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_without_matplotlib_the_install_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "aggmaze\[plots\]"'):
        check_matplotlib()
