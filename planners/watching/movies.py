"""Frames written as a GIF or a film."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from aggmaze.files import atomic_file


def write_gif(
    path: str | os.PathLike[str],
    pictures: Sequence[Callable[[], Image.Image]],
    milliseconds: Sequence[int],
    colors: Sequence[tuple[int, int, int]],
) -> None:
    """Write an animated GIF, whole or not at all.

    Parameters
    ----------
    path : path
    pictures : sequence of callable
        Each returns a picture; all of one size.
    milliseconds : sequence of int
        How long each is shown.
    colors : sequence of tuple of int
        At most 256, which all pictures are painted in.
    """
    # One table of colours for all: what does not change then does not flicker, and costs nothing.
    table = Image.new("P", (1, 1))
    table.putpalette([level for color in colors for level in color])

    def frames() -> Iterator[Image.Image]:
        for picture in pictures:
            yield picture().quantize(palette=table, dither=Image.Dither.NONE)

    found = frames()
    with atomic_file(path) as file:
        next(found).save(
            file,
            format="GIF",
            save_all=True,
            append_images=found,
            duration=list(milliseconds),
            loop=0,
            disposal=1,
        )


def check_ffmpeg() -> Any:
    """Return the package that writes films.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed, with the extra to install.
    """
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'an .mp4 needs the extra "video": pip install "aggmaze[video]"; '
            "a .gif or an .html page needs none",
            name=error.name,
        ) from None
    return imageio_ffmpeg


def write_mp4(
    path: str | os.PathLike[str],
    pictures: Sequence[Callable[[], Image.Image]],
    milliseconds: Sequence[int],
    frames_per_second: int = 30,
) -> None:
    """Write a film, whole or not at all.

    Parameters
    ----------
    path : path
    pictures : sequence of callable
        Each returns a picture; all of one size, whose sides are even.
    milliseconds : sequence of int
        How long each is shown.
    frames_per_second : int

    Raises
    ------
    ModuleNotFoundError
        If no encoder is installed, with the extra to install.
    """
    ffmpeg = check_ffmpeg()
    first = pictures[0]()
    with atomic_file(path) as file:
        writer = ffmpeg.write_frames(
            file.name,
            first.size,
            fps=frames_per_second,
            codec="libx264",
            quality=None,
            macro_block_size=2,
            output_params=["-crf", "20", "-f", "mp4", "-movflags", "+faststart"],
        )
        writer.send(None)
        try:
            shown, due = 0, 0.0
            for picture, duration in zip(pictures, milliseconds, strict=True):
                due += duration / 1000 * frames_per_second
                data = np.asarray(picture()).tobytes()
                while shown < due:
                    writer.send(data)
                    shown += 1
        finally:
            writer.close()
