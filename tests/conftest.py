"""What holds for all tests."""

import os

from hypothesis import settings

# No deadline, since the first example that reaches a compiled function pays for its compilation;
# and in continuous integration always the same examples.
settings.register_profile("aggmaze", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("aggmaze")

# No test opens a window on a screen.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
