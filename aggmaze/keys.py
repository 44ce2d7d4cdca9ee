"""Which keys move along which axis, by their codes in SDL, which pygame uses as they are."""

from __future__ import annotations

LEFT, RIGHT, DOWN, UP = 1073741904, 1073741903, 1073741905, 1073741906
ESCAPE = 27

# Of each axis the keys for -1 and +1, by their characters.
_LETTERS = ("ad", "sw", "qe", "zc", "12", "34", "56", "78")
_ARROWS = ((LEFT, RIGHT), (DOWN, UP))


def axis_keys(num_dims: int) -> dict[tuple[int], int]:
    """Return the action of each key: letters and digits, and arrows for the first two axes.

    The keys are tuples of one code each, as `gymnasium.utils.play` takes combinations.
    """
    actions = {}
    for axis in range(num_dims):
        pairs = [tuple(map(ord, _LETTERS[axis])), *_ARROWS[axis : axis + 1]]
        for pair in pairs:
            actions.update({(code,): 2 * axis + end for end, code in enumerate(pair)})
    return actions


def describe_keys(num_dims: int) -> str:
    """Return which keys move, in words; of more than two axes with the names of the actions."""
    if num_dims <= 2:
        return "arrows or WASD" if num_dims > 1 else "left and right, or A and D"
    others = [
        f"{' '.join(_LETTERS[axis].upper())} (axis {axis}: x{axis}- x{axis}+)"
        for axis in range(2, num_dims)
    ]
    return ", ".join(["arrows or WASD (axis 0: x0- x0+, axis 1: x1- x1+)", *others])


def key_of(action: int) -> str:
    """Return the keys of an action along an axis, in words: 1 is ``right or D``."""
    axis, end = divmod(action, 2)
    arrow = (("left", "right"), ("down", "up"))[axis][end] + " or " if axis < 2 else ""
    return arrow + _LETTERS[axis][end].upper()


def king_keys(*, stays: bool) -> dict[tuple[int], int]:
    """Return the action of each key where one moves as a king does, in two dimensions."""
    letters = {"z": 4, "q": 5, "c": 6, "e": 7} | ({"x": 8} if stays else {})
    return axis_keys(2) | {(ord(letter),): action for letter, action in letters.items()}


def describe_king_keys(*, stays: bool) -> str:
    """Return which keys move a king, in words."""
    return "arrows or WASD, Q E Z C (diagonally)" + (", X (stays)" if stays else "")
