"""What the colours of an overlay mean: a bar with its scale, and the number of mega-states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from aggmaze.rendering.colors import BACKGROUND, INK, label_colors, value_colors
from aggmaze.rendering.overlay import Overlay, number

#: Width and height of a legend beside a picture, in pixels.
SIZE = (108, 196)
_PADDING = 10
_FONT_SIZE = 13
_LINE = 18
_BAR = (14, 110)
_SWATCHES = 6


def is_needed(overlay: Overlay) -> bool:
    """Return whether there are colours to explain."""
    return overlay.values is not None or overlay.labels is not None


def draw(overlay: Overlay, marked: float | None = None) -> NDArray[np.uint8]:
    """Draw the legend of an overlay.

    Parameters
    ----------
    overlay : Overlay
        With values, labels or both.
    marked : float, optional
        A value to point at on the bar.

    Returns
    -------
    ndarray of uint8, shape (196, 108, 3)
    """
    image = Image.new("RGB", SIZE, BACKGROUND)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(_FONT_SIZE)
    y = _PADDING
    if overlay.values is not None:
        pen.text((_PADDING, y), "cost-to-go", fill=INK, font=font)
        y += _LINE + 4
        low, high = overlay.span
        width, height = _BAR
        bar = value_colors(np.linspace(1.0, 0.0, height)) if high > low else value_colors([0.0])
        tall = np.broadcast_to(bar[:, np.newaxis], (len(bar), width, 3))
        image.paste(Image.fromarray(np.ascontiguousarray(tall)).resize(_BAR), (_PADDING, y))
        pen.rectangle([_PADDING - 1, y - 1, _PADDING + width, y + height], outline=INK)
        ticks = np.linspace(high, low, 3) if high > low else [low]
        for place, tick in enumerate(ticks):
            at = y + place * (height - 1) / 2 if high > low else y + (height - 1) / 2
            pen.line([_PADDING + width, at, _PADDING + width + 3, at], fill=INK)
            pen.text((_PADDING + width + 7, at), number(tick), fill=INK, font=font, anchor="lm")
        if marked is not None and np.isfinite(marked):
            share = float(overlay.shares(np.array(marked)))
            at = y + (1 - share) * (height - 1) if high > low else y + (height - 1) / 2
            corner = _PADDING - 2
            pen.polygon([(corner, at), (corner - 6, at - 5), (corner - 6, at + 5)], fill=INK)
        y += height + 10
    if overlay.labels is not None:
        count = overlay.num_labels
        if overlay.values is None:
            shown = np.unique(overlay.labels)[:_SWATCHES]
            for place, color in enumerate(label_colors(shown).tolist()):
                left = _PADDING + 13 * place
                pen.rectangle([left, y, left + 10, y + 10], fill=tuple(color), outline=INK)
            y += _LINE
        pen.text((_PADDING, y), f"{count:,} mega-", fill=INK, font=font)
        pen.text((_PADDING, y + 15), "states" if count != 1 else "state", fill=INK, font=font)
    return np.asarray(image)


def paste(pixels: NDArray[np.uint8], overlay: Overlay, state: int) -> None:
    """Put a legend, if one is needed, into the upper right corner of a picture of one state.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (H, W, 3)
        Left as it is if there is no room.
    overlay : Overlay
    state : int
    """
    if not is_needed(overlay):
        return
    key = draw(overlay, None if overlay.values is None else float(overlay.values[state]))
    if key.shape[0] < pixels.shape[0] and key.shape[1] < pixels.shape[1]:
        pixels[: key.shape[0], -key.shape[1] :] = key


def lines(
    overlay: Overlay | None, state: int, action_names: Sequence[str], *, ended: bool
) -> list[str]:
    """Return what an overlay knows of a state, in words.

    Parameters
    ----------
    overlay : Overlay, optional
    state : int
    action_names : sequence of str
    ended : bool
        Whether it is an end, in which no action is told.
    """
    told = []
    if overlay is not None and overlay.values is not None:
        low, high = (number(end) for end in overlay.span)
        told.append(f"cost-to-go {number(overlay.values[state])} (from {low} to {high})")
    if overlay is not None and overlay.policy is not None and not ended:
        told.append(f"action {action_names[overlay.policy[state]]}")
    if overlay is not None and overlay.labels is not None:
        told.append(f"mega-state {overlay.labels[state]} of {overlay.num_labels:,}")
    return told
