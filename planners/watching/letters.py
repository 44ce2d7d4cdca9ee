"""Words and numbers in pictures."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from planners.watching.themes import Color


@functools.lru_cache(maxsize=32)
def font(size: int) -> Any:
    """Return the font of a size in pixels."""
    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=512)
def _mask(text: str, size: int) -> tuple[Image.Image, tuple[int, int]]:
    """Return a text as what covers the ground, and how far it begins from where it is put."""
    face = font(size)
    left, top, right, bottom = (math.floor(part) for part in face.getbbox(text))
    mask = Image.new("L", (right - left + 2, bottom - top + 2), 0)
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=face)
    return mask, (left, top)


def write(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], text: str, size: int, color: Color
) -> None:
    """Write a text; most are the same from frame to frame, and kept."""
    if text:
        mask, (left, top) = _mask(text, size)
        draw.bitmap((round(place[0]) + left, round(place[1]) + top), mask, fill=color)


@functools.lru_cache(maxsize=512)
def width_of(text: str, size: int) -> float:
    """Return how many pixels wide a text is.

    Parameters
    ----------
    text : str
    size : int
        Of the font.
    """
    width: float = font(size).getlength(text)
    return width


def short(value: float) -> str:
    """Write a number as a picture has room for it."""
    if math.isnan(value):
        return "-"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value + 0.0:.3g}"


def fitted(text: str, size: int, room: float) -> str:
    """Return a text, cut short where it does not fit into so many pixels."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text}…" if text else ""


def first_fitted(texts: Sequence[str], size: int, room: float) -> str:
    """Return the first text that fits, or the last, cut short.

    Parameters
    ----------
    texts : sequence of str
        The longest first.
    size : int
        Of the font.
    room : float
        Width of a line, in pixels.
    """
    for text in texts[:-1]:
        if width_of(text, size) <= room:
            return text
    return fitted(texts[-1], size, room)


def wrapped(text: str, size: int, room: float, most: int) -> list[str]:
    """Return a text in so many lines at most, broken between words; the last may be cut short.

    Parameters
    ----------
    text : str
    size : int
        Of the font.
    room : float
        Width of a line, in pixels.
    most : int
    """
    lines: list[str] = []
    words = text.split(" ")
    while words and len(lines) < most - 1:
        count = 1
        while count < len(words) and width_of(" ".join(words[: count + 1]), size) <= room:
            count += 1
        lines.append(fitted(" ".join(words[:count]), size, room))
        words = words[count:]
    return [*lines, fitted(" ".join(words), size, room)] if words else lines
