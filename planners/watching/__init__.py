"""The live view of a solve, and its recordings."""

try:
    import PIL  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'pictures need pillow: pip install "pillow>=11"', name=error.name
    ) from None

from planners.watching.run import check_recording, watch

__all__ = ["check_recording", "watch"]
