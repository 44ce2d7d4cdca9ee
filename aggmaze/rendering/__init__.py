"""Pictures of mazes: pixels in :mod:`.raster`, characters in :mod:`.ansi`."""

from aggmaze.rendering.ansi import text
from aggmaze.rendering.raster import Raster

__all__ = ["Raster", "text"]
