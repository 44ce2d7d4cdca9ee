"""Record adaptive aggregation on a maze: the picture that moves in the README, or a page.

    python scripts/docs/aggregation.py [docs/aggregation.gif]
    python scripts/docs/aggregation.py run.html

The first is stored, the second is made for the front page of the site (scripts/docs/site.py).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import gymnasium as gym

import aggmaze
from planners.watching import watch

assert aggmaze.ENV_IDS  # registers them

TARGET = Path(__file__).resolve().parents[2] / "docs" / "aggregation.gif"
# A README is loaded often, and by phones.
MOST_BYTES = 500_000
MAZE = {"shape": (20, 20), "p": 0.95, "loops": 0.15}
GAMMA, NUM_ITERATIONS = 0.97, 300
SIZE, NUM_FRAMES = (600, 420), 30


def main() -> int:
    """Run the script and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("target", nargs="?", type=Path, default=TARGET, help=".gif or .html")
    target = parser.parse_args().target
    record(target)
    size = target.stat().st_size
    print(f"wrote {target}, {size:,} bytes")
    if target.suffix == ".gif" and size > MOST_BYTES:
        print(f"that is more than {MOST_BYTES:,} bytes: take fewer frames", file=sys.stderr)
        return 1
    return 0


def record(target: Path) -> None:
    """Write the recording: a picture that moves, or a page with a slider."""
    env = gym.make("StandardMaze-v0", **MAZE)
    picture = {"size": SIZE, "frames": NUM_FRAMES} if target.suffix == ".gif" else {}
    watch(
        env,
        gamma=GAMMA,
        num_iterations=NUM_ITERATIONS,
        record=target,
        title="Mega-states forming in a maze",
        **picture,
    )


if __name__ == "__main__":
    sys.exit(main())
