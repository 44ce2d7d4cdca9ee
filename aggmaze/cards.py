"""How notebooks show objects: a small table of facts and a small picture, as HTML.

Colours of text are inherited and those of drawings lie midway, so that a card looks right on light
and on dark pages.  Pictures are ``data:`` addresses, which notebooks keep where they drop inline
SVG, scripts and style sheets.  All text is escaped: names may come with a stranger's model.
"""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Bytes that one picture may take; a card has at most three.
MOST_BYTES = 45_000
#: Length in pixels of the longer side of a picture that would else take more.
REDUCED = (400, 300, 200)
#: Pixels on the page that a picture is at most wide.
WIDEST = 320

# Seen on white and on black alike.
_BLUE, _ORANGE, _GREY = "#3a87c8", "#d9822b", "#888888"
_BLUE_LEVELS = (58, 135, 200)
_CURVE = (240, 130)
_MOST_POINTS = 200
_MOST_BARS = 64
_SPY = 160
_HEAT = 160

_CELL = "padding:1px 10px 1px 0;border:none;text-align:left;vertical-align:top"


class Figure(NamedTuple):
    """A picture with what it shows.

    Parameters
    ----------
    source : str
        Its ``data:`` address.
    width : int
        On the page, in pixels.
    caption : str
        Plain text.
    smooth : bool
        Whether it may be scaled smoothly, rather than pixel by pixel.
    scale : tuple of three str, optional
        What the least value is, the ``data:`` address of the colours from it on, and the greatest.
    is_curve : bool
        Whether it is low and wide.
    """

    source: str
    width: int
    caption: str
    smooth: bool = True
    scale: tuple[str, str, str] | None = None
    is_curve: bool = False


def number(value: float) -> str:
    """Write a number in few characters."""
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e9 else f"{value:.4g}"


def color_scale(values: NDArray[Any], colors: NDArray[np.uint8]) -> tuple[str, str, str] | None:
    """Return the scale of a `Figure`; None where the finite values are all the same.

    Parameters
    ----------
    values : ndarray of float, any shape
    colors : ndarray of uint8, shape (N, 3)
        From the least value to the greatest.
    """
    from PIL import Image

    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return None
    bar = _address("image/png", _png(Image.fromarray(colors[np.newaxis])))
    return number(float(finite.min())), bar, number(float(finite.max()))


def counted(count: int, word: str) -> str:
    """Write how many there are of what a word says, with an s unless it is one.

    Parameters
    ----------
    count : int
    word : str
    """
    return f"{count:,} {word}{'s' * (count != 1)}"


def span(values: NDArray[Any]) -> str:
    """Write the least and the greatest of the finite values of an array; "none" without any."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "none is finite"
    low, high = float(finite.min()), float(finite.max())
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def card(
    title: str,
    facts: Iterable[tuple[str, Any]],
    figures: Sequence[Figure] = (),
    table: tuple[Sequence[str], Iterable[Sequence[str]]] | None = None,
) -> str:
    """Return the HTML of an object.

    Parameters
    ----------
    title : str
        What it is.
    facts : iterable of pair
        Names and values, one a line.
    figures : sequence of Figure
    table : pair, optional
        The heads of the columns of a second table, and its rows.

    Returns
    -------
    str
    """
    told = _table(facts, heads=())
    if table is not None:
        heads, lines = table
        told += _table(lines, heads)
    # Curves, which are low and wide, go below the facts, and a map beside them.
    told += "".join(_block(figure) for figure in figures if figure.is_curve)
    columns = [told, *(_block(figure) for figure in figures if not figure.is_curve)]
    inside = "".join(f'<div style="max-width:100%">{column}</div>' for column in columns)
    return (
        '<div style="border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:8px 12px;'
        'display:inline-block;max-width:100%;box-sizing:border-box;font-size:13px;line-height:1.45">'
        f'<div style="font-weight:600;margin-bottom:6px">{html.escape(title)}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:10px 28px;align-items:flex-start">'
        f"{inside}</div></div>"
    )


def _table(rows: Iterable[Sequence[str]], heads: Sequence[str]) -> str:
    """Return a table; without heads the first column is one."""
    faint = f'<th style="{_CELL};font-weight:normal;opacity:.65;white-space:nowrap">'
    head = "".join(f"{faint}{html.escape(text)}</th>" for text in heads)
    lines = [head] if heads else []
    for row in rows:
        cells = [html.escape(str(text)) for text in row]
        lines.append(
            "".join(
                f"{faint}{text}</th>"
                if place == 0 and not heads
                else f'<td style="{_CELL}">{text}</td>'
                for place, text in enumerate(cells)
            )
        )
    inside = "".join(f'<tr style="background:none">{line}</tr>' for line in lines)
    return (
        '<table style="border:none;border-collapse:collapse;margin:0 0 8px;font-size:13px;'
        f'color:inherit">{inside}</table>'
    )


def _block(figure: Figure) -> str:
    scaling = "" if figure.smooth else "image-rendering:pixelated;"
    caption = html.escape(figure.caption)
    key = ""
    if figure.scale is not None:
        low, colors, high = figure.scale
        key = (
            f'<div style="display:flex;gap:6px;align-items:center">{html.escape(low)}'
            f'<img src="{colors}" alt="to" style="flex:1;min-width:40px;height:8px;margin:0">'
            f"{html.escape(high)}</div>"
        )
    return (
        f'<img src="{figure.source}" alt="{caption}" width="{figure.width}" '
        f'style="display:block;max-width:100%;height:auto;margin:0;{scaling}">'
        f'<div style="font-size:12px;max-width:{figure.width}px;margin:3px 0 8px">'
        f'{key}<div style="opacity:.75">{caption}</div></div>'
    )


def picture(pixels: NDArray[np.uint8], caption: str, *, smooth: bool = True) -> Figure:
    """Return a picture of at most `MOST_BYTES`, reduced where it would take more.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (H, W, 3) or (H, W, 4)
    caption : str
    smooth : bool
        Whether it may be scaled smoothly.
    """
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    width = min(WIDEST, image.width)
    # Averages of neighbours, so that thin lines turn paler and do not vanish.
    if max(image.size) > 2 * REDUCED[0]:
        image = _reduced(image, REDUCED[0])
    data = _png(image)
    for longest in REDUCED:
        if len(data) <= MOST_BYTES:
            break
        # A byte a pixel: 200 by 200 are within the limit, whatever they show.
        data = _png(_reduced(image, longest).convert("RGB").quantize(256))
    return Figure(_address("image/png", data), width, caption, smooth)


def _reduced(image: Any, longest: int) -> Any:
    from PIL import Image

    scale = min(1.0, longest / max(image.size))
    size = tuple(max(1, round(side * scale)) for side in image.size)
    return image.resize(size, Image.Resampling.BOX)


def _png(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _address(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def profile(values: ArrayLike, caption: str) -> Figure:
    """Return a curve of the finite values of an array in ascending order.

    Parameters
    ----------
    values : array_like of float, any shape
        At least one is finite.
    caption : str
    """
    array = np.asarray(values, dtype=np.float64).reshape(-1)
    ordered = np.sort(array[np.isfinite(array)])
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), _MOST_POINTS)).round().astype(int)
    heights = ordered[places]
    x = np.linspace(0.0, 1.0, len(heights)) if len(heights) > 1 else np.array([0.0])
    if len(heights) == 1:
        x, heights = np.array([0.0, 1.0]), np.repeat(heights, 2)
    return _drawing([_line(x, _shares(heights), _BLUE)], caption)


def progress(curves: Iterable[tuple[ArrayLike, ArrayLike]], caption: str) -> Figure | None:
    """Return curves on a logarithmic scale; None where less than two points could be drawn.

    Parameters
    ----------
    curves : iterable of pair of array_like, shape (N,)
        Places, which do not fall, and heights; at most two curves, the first is blue, the second
        orange.  Only heights that are positive and finite are drawn.
    caption : str
    """
    drawn = []
    for places, heights in curves:
        x, y = np.asarray(places, dtype=np.float64), np.asarray(heights, dtype=np.float64)
        fine = np.isfinite(y) & (y > 0)
        drawn.append((x[fine], np.log10(y[fine])))
    if max((len(x) for x, _ in drawn), default=0) < 2:
        return None
    every_x, every_y = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    left, right = float(every_x.min()), float(every_x.max())
    low, high = float(every_y.min()), float(every_y.max())
    parts = []
    for (x, y), color in zip(drawn, (_BLUE, _ORANGE), strict=False):
        if len(x):
            few = np.unique(np.linspace(0, len(x) - 1, _MOST_POINTS).round().astype(int))
            across = (x[few] - left) / (right - left) if right > left else 0 * x[few]
            up = (y[few] - low) / (high - low) if high > low else 0 * y[few] + 0.5
            parts.append(_line(across, up, color))
    return _drawing(parts, caption)


def bars(probabilities: NDArray[np.float64], caption: str) -> Figure:
    """Return bars of one distribution, of groups of events where there are many.

    Parameters
    ----------
    probabilities : ndarray of float, shape (E,)
    caption : str
    """
    count = min(len(probabilities), _MOST_BARS)
    edges = np.linspace(0, len(probabilities), count + 1).astype(int)
    heights = np.add.reduceat(probabilities, edges[:-1])
    top = float(heights.max())
    width, height = _CURVE
    room = width / count
    rectangles = [
        f'<rect x="{room * (k + 0.1):.1f}" y="{height * (1 - share):.1f}" '
        f'width="{room * 0.8:.2f}" height="{height * share:.1f}" fill="{_BLUE}"/>'
        for k, share in enumerate((heights / top).tolist())
    ]
    return _drawing(rectangles, caption)


def spy(places: NDArray[np.int64], followers: NDArray[np.int64], size: int, caption: str) -> Figure:
    """Return which states lead to which: a state a row, and a column for each that may follow.

    Parameters
    ----------
    places, followers : ndarray of int, shape (N,)
        Those in ``[0, size)`` are shown.
    size : int
        Number of states.
    caption : str
    """
    count = min(size, _SPY)
    # Of a model that nobody has checked yet they may lie anywhere.
    within = (followers >= 0) & (followers < size)
    rows, columns = places[within] * count // size, followers[within] * count // size
    found = np.bincount(rows * count + columns, minlength=count * count).reshape(count, count)
    pixels = np.zeros((count, count, 4), np.uint8)
    pixels[..., :3] = _BLUE_LEVELS
    shade = 0.45 + 0.55 * np.log1p(found) / math.log1p(max(1, int(found.max())))
    pixels[..., 3] = np.where(found > 0, np.rint(255 * shade), 26)
    scale = max(1, _SPY // count)
    return picture(pixels.repeat(scale, axis=0).repeat(scale, axis=1), caption, smooth=False)


def heat(values: NDArray[np.float64], caption: str) -> Figure:
    """Return an array as shades of blue, the greatest finite values the strongest.

    Parameters
    ----------
    values : ndarray of float, shape (rows, columns)
        Of more than 160 rows or columns every so many are taken.
    caption : str
    """
    rows, columns = (
        np.unique(np.linspace(0, n - 1, min(n, _HEAT)).round().astype(int)) for n in values.shape
    )
    shares = _shares(values[np.ix_(rows, columns)])
    pixels = np.zeros((*shares.shape, 4), np.uint8)
    pixels[..., :3] = _BLUE_LEVELS
    pixels[..., 3] = np.where(np.isnan(shares), 0, np.rint(26 + 229 * np.nan_to_num(shares)))
    down, across = (max(1, _HEAT // n) for n in shares.shape)
    return picture(pixels.repeat(down, axis=0).repeat(across, axis=1), caption, smooth=False)


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where values lie between the least and the greatest; NaN where they are infinite."""
    finite = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(finite).all():
        return finite
    low, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    # Halved first: the difference of two large numbers may be infinite.
    return (finite / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0 * finite + 0.5


def _line(x: NDArray[np.float64], y: NDArray[np.float64], color: str) -> str:
    width, height = _CURVE
    points = " ".join(
        f"{width * a:.1f},{height * (1 - b):.1f}"
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    )
    return (
        f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" '
        'stroke-linejoin="round" stroke-linecap="round"/>'
    )


def _drawing(parts: Iterable[str], caption: str) -> Figure:
    width, height = _CURVE
    box = f"-6 -6 {width + 12} {height + 12}"
    frame = (
        f'<path d="M0 0V{height}H{width}" fill="none" stroke="{_GREY}" stroke-width="1" '
        'opacity=".7"/>'
    )
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{width + 12}" '
        f'height="{height + 12}">{frame}{"".join(parts)}</svg>'
    )
    source = _address("image/svg+xml", text.encode("ascii"))
    return Figure(source, width + 12, caption, is_curve=True)
