"""Seeded damage to files: bytes are flipped, removed or repeated; JSON values are replaced by unexpected ones."""

from __future__ import annotations

import json
import random
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 10**18, 10**400, -0.0, 5e-324, 1e308, -1e300, 0.1),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "x", "..", "../../outside", "/", "a--b", "a/b", "\x00", "\x1b[31m", "<script>", "é", "\ud800", "=1+1", "-"),
    *("x" * 10_000, [], {}, [[]], {"": {}}, [0] * 1000, {"x": 1}, "2026-11-22T10:00:00Z", "9999-12-31T23:59:59Z"),
    *("0001-01-01T00:00:00+23:59", "measured", "skipped", "failed", "NaN", "1e400"),
)
INTERESTING_BYTES = b'\x00\xff\x80\x7f"{}[],:\\\n-0919eE.'
MOST_DEPTH = 3000


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """Make one to four changes anywhere."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(damaged) + 1)
        length = min(rng.choice((1, 1, 2, 4, 8, 64, 1024)), len(damaged) - at)
        how = rng.randrange(8)
        if how == 0 and at < len(damaged):
            damaged[at] ^= 1 << rng.randrange(8)
        elif how == 1 and at < len(damaged):
            damaged[at] = rng.choice(INTERESTING_BYTES)
        elif how == 2:
            del damaged[at : at + length]
        elif how == 3:
            damaged[at:at] = damaged[at : at + length]
        elif how == 4:
            damaged[at:at] = rng.randbytes(length)
        elif how == 5:
            del damaged[at:]
        elif how == 6:
            other = rng.randrange(len(damaged) + 1)
            damaged[at : at + length] = damaged[other : other + length]
        else:
            damaged[at : at + length] = bytes([rng.choice(INTERESTING_BYTES)]) * length
    return bytes(damaged)


def damage_json(text: str, rng: random.Random) -> str:
    """Make one to three changes to the structure. The result is JSON as Python writes it, with NaN and infinity."""
    value = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _damage(value, rng)
    if rng.random() < 0.02:
        deep = rng.randrange(1, MOST_DEPTH)
        return "[" * deep + json.dumps(value) + "]" * deep
    made = json.dumps(value)
    if rng.random() < 0.03 and made.startswith("{") and len(made) > 2:
        # Repeat a key: readers must decide which of the two counts.
        name = rng.choice(list(value))
        made = made[:-1] + f", {json.dumps(name)}: {json.dumps(_odd(rng))}}}"
    return made


def _damage(value: Any, rng: random.Random) -> Any:
    """Make one change, to the value itself or to something inside it."""
    below = isinstance(value, (dict, list)) and value
    if not below or rng.random() < 0.1:
        return _near(value, rng)
    if isinstance(value, dict):
        return _damage_object(dict(value), rng)
    items = list(value)
    at, how = rng.randrange(len(items)), rng.randrange(10)
    if how == 0:
        del items[at]
    elif how == 1:
        items.insert(at, items[at])
    elif how == 2:
        items *= rng.choice((2, 50))
    elif how == 3:
        items.append(_odd(rng))
    else:
        items[at] = _damage(items[at], rng)
    return items


def _damage_object(fields: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    name, how = rng.choice(list(fields)), rng.randrange(10)
    if how == 0:
        del fields[name]
    elif how == 1:
        fields[str(rng.choice(("unknown", "", "__class__", name.upper())))] = _odd(rng)
    elif how == 2:
        # Names are input too.
        moved = fields.pop(name)
        fields[str(_odd(rng))] = moved
    elif how == 3:
        fields[name] = fields[rng.choice(list(fields))]
    else:
        fields[name] = _damage(fields[name], rng)
    return fields


def _odd(rng: random.Random) -> Any:
    return rng.choice(ODD_VALUES)


def _near(value: Any, rng: random.Random) -> Any:
    """A nearly correct value, or an odd one."""
    near = rng.random() < 0.5
    if near and isinstance(value, (int, float)) and abs(value) < 1e300 and not isinstance(value, bool):
        return rng.choice((-value, value + 1, value * 1e30, value * 1e-300, str(value), [value], float(value)))
    if near and isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return rng.choice(
            (value[:at], value[:at] + rng.choice("/\\.\x00\x1b<&-é") + value[at:], value * 40, value.upper())
        )
    return _odd(rng)
