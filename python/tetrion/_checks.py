"""Arguments of every class of the package, checked in one way: TypeError for a wrong type,
ValueError for a value out of range."""

from __future__ import annotations

import difflib
import functools
import inspect
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

_P = ParamSpec("_P")
_R = TypeVar("_R")

_FOR_EVER_S = 1e9


def integer(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an int of least..most. What has __index__ is an integer, but bool is not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not least <= number <= most:
        raise ValueError(f"{name} must be {_power(least)} to {_power(most)}, not {number}")
    return number


def boolean(name: str, value: Any) -> bool:
    """`value`, which is True or False, of Python or numpy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def known_keyword(owner: str, name: str, known: Iterable[str]) -> None:
    """TypeError that names what `name` may have been meant to be, unless it is one of `known`."""
    known = list(known)
    if name in known:
        return
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    raise TypeError(f"{owner} has no keyword {name!r}: {hint}")


def keywords(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function`, a constructor, with known_keyword() in front."""
    owner = function.__qualname__.split(".")[0]
    known = list(inspect.signature(function).parameters)[1:]

    @functools.wraps(function)
    def checked(*args: _P.args, **given: _P.kwargs) -> _R:
        for name in given:
            known_keyword(owner, name, known)
        return function(*args, **given)

    return checked


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value`, one of `choices`."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def function(name: str, value: Any) -> Any:
    """`value`, which is None or callable."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value


def items(name: str, value: Any, wanted: str) -> list[Any]:
    """`value`, which is iterable, as a list."""
    try:
        return [*value]
    except TypeError:
        raise TypeError(f"{name} must be {wanted}, not {value!r}") from None


def options(value: Any) -> dict[str, Any]:
    """The options of a reset; None are none."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"options must be a dict or None, not {value!r}")
    return dict(value or {})


def seconds(name: str, value: Any) -> float | None:
    """A positive time in seconds, thirty years at most; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number of seconds or None, not {value!r}")
    number: Any = value  # numbers.Real promises no order, all there are have one
    if not number > 0:
        raise ValueError(f"{name} must be positive or None, not {value}")
    return _FOR_EVER_S if number >= _FOR_EVER_S else float(number)


def _power(number: int) -> str:
    """Large bounds as people write them."""
    for bits in (24, 30, 31, 62, 63, 64):
        if number == 2**bits:
            return f"2**{bits}"
        if number == 2**bits - 1:
            return f"2**{bits} - 1"
    return str(number)
