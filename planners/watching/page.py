"""One self-contained page of a run: a slider over its iterations, and what each state was worth."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import zlib
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggmaze.files import atomic_file
from aggmaze.rendering.colors import AGENT, GOAL
from planners.watching.film import Frame, Point
from planners.watching.painter import Words
from planners.watching.scenes import Scene
from planners.watching.themes import DARK, GROUPS, LIGHT, Theme, ramp, spread

#: Bytes that a page has at most; frames are left out until it fits.
MOST_BYTES = 2_800_000
# Steps in which values are told.
_STEPS = 65535
# What stands for a value that is not finite.
_UNKNOWN = 65535
_NO_ACTION = 255
# Names of states that a page holds.
_MOST_NAMES = 5000
_MOST_POINTS = 1500


class Shown(NamedTuple):
    """A frame with what follows from it."""

    frame: Frame
    policy: NDArray[np.int64] | None
    path: NDArray[np.int64]


def write_page(
    path: str | os.PathLike[str],
    scene: Scene,
    words: Words,
    shown: list[Shown],
    points: list[Point],
) -> None:
    """Write the page, whole or not at all.

    Parameters
    ----------
    path : path
    scene : Scene
    words : Words
    shown : list of Shown
        In the order of the iterations, at least one.
    points : list of Point
        Of the curves.
    """
    text = page_text(scene, words, shown, points)
    # First and last stay, of the others every second one goes.
    while len(text) > MOST_BYTES and len(shown) > 2:
        shown = [*shown[:-1][::2], shown[-1]]
        text = page_text(scene, words, shown, points)
    with atomic_file(path) as file:
        file.write(text.encode())


def page_text(scene: Scene, words: Words, shown: list[Shown], points: list[Point]) -> str:
    """Return the page as text.

    Parameters
    ----------
    scene : Scene
    words : Words
    shown : list of Shown
    points : list of Point
    """
    head, body = _encoded(scene, shown)
    head |= {
        "title": words.title,
        "subtitle": words.subtitle,
        "label": words.label,
        "points": _columns(points),
        "themes": {"light": _css(LIGHT), "dark": _css(DARK)},
        "goal": _hex(GOAL),
        "agent": _hex(AGENT),
    }
    data = json.dumps(head, separators=(",", ":"), allow_nan=False)
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    pieces = {
        "{{TITLE}}": html.escape(words.title),
        # What ends a script must not stand in one.
        "{{HEAD}}": data.replace("<", "\\u003c"),
        "{{BODY}}": base64.b64encode(zlib.compress(body, 9)).decode(),
    }
    for place, text in pieces.items():
        before, after = template.split(place)
        template = before + text + after
    return template


def _encoded(scene: Scene, shown: list[Shown]) -> tuple[dict[str, Any], bytes]:
    """Return what is told of a run in JSON, and its arrays one behind the other.

    Arrays lie in the order in which the page reads them: cells of the scene, walls and blocked
    cells, then of all frames the upper and the lower bytes of values, actions and mega-states as
    differences to the frame before, and paths as differences from state to state.
    """
    count = scene.num_states
    rows, columns = scene.index.shape
    parts: list[NDArray[Any]] = [
        scene.index.astype("<i4"),
        np.packbits(scene.wall_right),
        np.packbits(scene.wall_below),
        np.packbits(scene.blocked),
    ]
    values = np.empty((len(shown), count), dtype=np.uint16)
    actions = np.full((len(shown), count), _NO_ACTION, dtype=np.uint8)
    labels: list[NDArray[np.uint16]] = []
    frames = []
    for place, (frame, policy, path) in enumerate(shown):
        own = frame.values[:count]
        low, high = spread(own)
        width = high - low
        scaled = (own - low) / width * (_STEPS - 1) if width > 0 else np.zeros(count)
        values[place] = np.where(
            np.isfinite(own), np.rint(np.nan_to_num(scaled, posinf=0.0)), _UNKNOWN
        )
        if policy is not None:
            actions[place] = np.minimum(policy[:count], _NO_ACTION - 1)
            actions[place, scene.goals[scene.goals < count]] = _NO_ACTION
        if frame.labels is not None:
            found = (frame.labels[:count] % 65536).astype(np.uint16)
            if not labels or not np.array_equal(labels[-1], found):
                labels.append(found)
        frames.append(
            [
                frame.iteration,
                frame.num_updates,
                _rounded(frame.seconds),
                frame.num_megastates,
                _rounded(frame.residual),
                _rounded(frame.bound),
                low,
                high,
                len(labels) - 1,
                len(path),
            ]
        )
    before = np.diff(values.astype(np.int32), axis=0, prepend=0).astype(np.uint16)
    parts += [(before >> 8).astype(np.uint8), (before & 255).astype(np.uint8)]
    parts.append(np.diff(actions.astype(np.int16), axis=0, prepend=0).astype(np.uint8))
    sets = np.array(labels, dtype=np.int32).reshape(len(labels), count)
    parts.append(np.diff(sets, axis=0, prepend=0).astype("<u2") if len(sets) else sets)
    for item in shown:
        parts.append(np.diff(item.path, prepend=0).astype("<i4"))
    named = scene.names is not None and count <= _MOST_NAMES
    head = {
        "rows": rows,
        "columns": columns,
        "states": count,
        "sets": len(labels),
        "frames": frames,
        "goals": scene.goals.tolist() if len(scene.goals) <= _MOST_NAMES else [],
        "pits": scene.pits.tolist() if len(scene.pits) <= _MOST_NAMES else [],
        "start": scene.start,
        "axes": list(scene.axes),
        "names": [str(name) for name in scene.names or ()] if named else None,
        "actions": list(scene.actions),
        "form": scene.form,
        "graph": _graph(scene),
        "groups": [_hex(color) for color in GROUPS],
        "ramp": ["#%02x%02x%02x" % tuple(color) for color in ramp()[::2].tolist()],  # noqa: UP031
    }
    # Of two bytes, at places that are even: after what is of one byte there may be a gap.
    return head, b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def _graph(scene: Scene) -> dict[str, Any] | None:
    """Return where states of a graph are, and its arrows: from, action, to, chance."""
    graph = scene.graph
    if graph is None:
        return None
    arrows = zip(
        graph.state.tolist(),
        graph.action.tolist(),
        graph.following.tolist(),
        np.round(graph.chance, 3).tolist(),
        strict=True,
    )
    return {"points": np.round(graph.points, 4).tolist(), "arrows": [list(row) for row in arrows]}


def _columns(points: list[Point]) -> list[list[Any]]:
    step = math.ceil(len(points) / _MOST_POINTS) if points else 1
    kept = points[::step] if step > 1 else points
    if points and kept[-1] is not points[-1]:
        kept = [*kept, points[-1]]
    return [
        [p.num_updates, _rounded(p.residual), _rounded(p.bound), int(p.num_megastates > 0)]
        for p in kept
    ]


def _rounded(value: float) -> float | None:
    """Return a number to six digits, None where it is none."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _css(theme: Theme) -> dict[str, str]:
    return {name: _hex(color) for name, color in vars(theme).items()}


def _hex(color: tuple[int, int, int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in color)
