"""Instructions -> bytes: an assembler for the part of x86-64 that the emitter needs, with AVX2 or AVX-512.

A register is `Reg` (64 bits, for integers and addresses), a vector is `Vec` (8, 16, 32 or 64 bytes of doubles), and an
operand in memory is `Mem`: `base + scale * index + disp`, or a label, whose address is relative to the instruction.

Vector instructions are rows of a table: prefix, map of opcodes, opcode, and the W bit. A row has two encodings. VEX is
the shorter one, with 16 registers of up to 32 bytes. EVEX has 32 registers of up to 64 bytes. Example: `vaddpd` is the
row (66, 0F, 58). Adding ymm2 to ymm1 is `C5 F5 58 C2` in VEX, and adding zmm2 to zmm1 is `62 F1 F5 48 58 C2` in EVEX.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "Instruction Format".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, Optional, Union


class Reg(NamedTuple):
    """A general register."""

    number: int

    def __str__(self) -> str:
        return _NAMES[self.number]


_NAMES = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))
RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 = map(Reg, range(16))


class Vec(NamedTuple):
    """A vector register, and how many bytes of it an instruction uses."""

    number: int
    size: int
    """8 for a single double, 16, 32 or 64."""

    def __str__(self) -> str:
        return f"{'zyx'[(64, 32, 16).index(max(self.size, 16))]}mm{self.number}"


class Mask(NamedTuple):
    """A mask register of AVX-512, with a bit for each lane."""

    number: int

    def __str__(self) -> str:
        return f"k{self.number}"


class Mem(NamedTuple):
    """An operand in memory."""

    base: Optional[Reg]
    """None: relative to the next instruction, from `label`."""
    disp: int = 0
    index: Optional[Reg] = None  # type: ignore[assignment]  # not the method of tuples
    scale: int = 1
    label: str = ""
    spread: int = 0
    """The lanes to which an instruction of AVX-512 copies one double; 0: it reads a whole vector."""

    def __str__(self) -> str:
        if self.base is None:
            return f"[{self.label}{f' + {self.disp}' if self.disp else ''}]"
        parts = [str(self.base), *([f"{self.scale}*{self.index}"] if self.index else [])]
        sign = f" {'-' if self.disp < 0 else '+'} {abs(self.disp)}" if self.disp else ""
        return f"[{' + '.join(parts)}{sign}]{f'{{1to{self.spread}}}' if self.spread else ''}"


Register = Union[Reg, Vec, Mask]
Place = Union[Reg, Mem]


class Row(NamedTuple):
    """A row of the table of vector instructions."""

    prefix: int
    """0x66, 0xF3 or 0xF2."""
    map: int
    """1 for 0F, 2 for 0F38, 3 for 0F3A."""
    opcode: int
    wide: bool = True
    """The W bit in EVEX."""
    wide_vex: bool = False
    """The W bit in VEX."""
    scalar: bool = False
    """Whether it uses one double, so that a vector register's size does not count."""
    narrow: int = 1
    """An operand in memory has the register's size divided by this."""
    evex: bool = False
    """Whether it has only one encoding."""


_OPCODES = {"sqrt": 0x51, "add": 0x58, "mul": 0x59, "sub": 0x5C, "min": 0x5D, "div": 0x5E, "max": 0x5F, "cmp": 0xC2}

TABLE: dict[str, Row] = {
    **{f"v{name}pd": Row(0x66, 1, opcode) for name, opcode in _OPCODES.items()},
    **{f"v{name}sd": Row(0xF2, 1, opcode, scalar=True) for name, opcode in _OPCODES.items()},
    "vmovupd": Row(0x66, 1, 0x10),
    "vmovupd_store": Row(0x66, 1, 0x11),
    "vmovsd": Row(0xF2, 1, 0x10, scalar=True),
    "vmovsd_store": Row(0xF2, 1, 0x11, scalar=True),
    "vmovapd": Row(0x66, 1, 0x28),
    "vbroadcastsd": Row(0x66, 2, 0x19, narrow=0),
    "vmovddup": Row(0xF2, 1, 0x12, narrow=0),
    "vblendvpd": Row(0x66, 3, 0x4B),
    "vblendmpd": Row(0x66, 2, 0x65),
    "vandpd": Row(0x66, 1, 0x54),
    "vorpd": Row(0x66, 1, 0x56),
    "vxorpd": Row(0x66, 1, 0x57),
    "vunpcklpd": Row(0x66, 1, 0x14),
    "vunpckhpd": Row(0x66, 1, 0x15),
    "vshuff64x2": Row(0x66, 3, 0x23, evex=True),
    "vperm2f128": Row(0x66, 3, 0x06),
    "vpsubq": Row(0x66, 1, 0xFB),
    "vpsllvq": Row(0x66, 2, 0x47, wide_vex=True),
    "vrsqrt14pd": Row(0x66, 2, 0x4E, evex=True),
    "vucomisd": Row(0x66, 1, 0x2E, scalar=True),
    "vfmadd231pd": Row(0x66, 2, 0xB8, wide_vex=True),
    "vfmadd231sd": Row(0x66, 2, 0xB9, wide_vex=True, scalar=True),
    "vfmadd213pd": Row(0x66, 2, 0xA8, wide_vex=True),
    "vfmadd213sd": Row(0x66, 2, 0xA9, wide_vex=True, scalar=True),
    "vfmsub231pd": Row(0x66, 2, 0xBA, wide_vex=True),
    "vfnmadd231pd": Row(0x66, 2, 0xBC, wide_vex=True),
    "vfnmadd231sd": Row(0x66, 2, 0xBD, wide_vex=True, scalar=True),
    "vpmovzxbd": Row(0x66, 2, 0x31, wide=False, narrow=4),
    "vcvtdq2pd": Row(0xF3, 1, 0xE6, wide=False, narrow=2),
    "vpaddd": Row(0x66, 1, 0xFE, wide=False),
    "vcvtsi2sd": Row(0xF2, 1, 0x2A, wide_vex=True, scalar=True),
    "vmovmskpd": Row(0x66, 1, 0x50),
    "kmovb": Row(0x66, 1, 0x93),
}

_PREFIXES = {0x66: 1, 0xF3: 2, 0xF2: 3}
_LENGTHS = {8: 0, 16: 0, 32: 1, 64: 2}
CONDITIONS = {"b": 2, "e": 4, "ne": 5, "be": 6, "a": 7, "p": 10, "np": 11, "l": 12, "ge": 13, "le": 14, "g": 15}
"""Condition of a jump -> the low bits of its opcode."""


class Integer(NamedTuple):
    """The opcodes of an instruction for integers."""

    load: bytes = b""
    """To a register, from a register or memory."""
    store: bytes = b""
    """To memory, from a register."""
    constant: tuple[bytes, int, int] = (b"", 0, 0)
    """With a constant: opcode, extension, bytes of the constant. The opcode 81 has a shorter form, 83. An instruction
    with one operand has no bytes of a constant."""
    prefix: bytes = b"\x48"
    """What precedes the opcode. The last byte, REX, gets the high bits of registers. 48: for 8 bytes."""


INTEGERS = {
    "mov": Integer(b"\x8b", b"\x89", (b"\xc7", 0, 4)),
    "lea": Integer(b"\x8d"),
    "add": Integer(b"\x03", b"\x01", (b"\x81", 0, 4)),
    "sub": Integer(b"\x2b", b"\x29", (b"\x81", 5, 4)),
    "and": Integer(b"\x23", b"\x21", (b"\x81", 4, 4)),
    "or": Integer(b"\x0b", b"\x09", (b"\x81", 1, 4)),
    "cmp": Integer(b"\x3b", b"\x39", (b"\x81", 7, 4)),
    "imul": Integer(b"\x0f\xaf"),
    "movsxd": Integer(b"\x63"),
    "movzx": Integer(b"\x0f\xb6"),
    "popcnt": Integer(b"\x0f\xb8", prefix=b"\xf3\x48"),
    "tzcnt": Integer(b"\x0f\xbc", prefix=b"\xf3\x48"),
    "shl": Integer(constant=(b"\xc1", 4, 1)),
    "shr": Integer(constant=(b"\xc1", 5, 1)),
    "mov dword": Integer(store=b"\x89", prefix=b"\x40"),
    "call": Integer(constant=(b"\xff", 2, 0), prefix=b"\x40"),
}


class Line(NamedTuple):
    """An instruction, a label or a comment of a listing. Its text is made when the listing is printed."""

    offset: int
    size: int
    """0 for labels and comments."""
    name: str
    operands: tuple[Any, ...] = ()
    """The arguments of `Assembler.vector` or `Assembler.integer`, or a label, or what makes the text of a comment."""

    def __str__(self) -> str:
        if not self.name:
            return f"; {self.operands[0]()}"
        name, mask = self.name, ""
        shown = [part for part in self.operands if part is not None]
        if name in TABLE:
            *_, only = self.operands
            if only:
                shown, mask = shown[:-1], f" {{{only}}}"
        if name.endswith("_store"):
            name, shown = name.replace("_store", ""), shown[::-1]
        return f"{name} {', '.join(map(str, shown))}{mask}".strip()


class Assembler:
    """Code as it grows, with labels that may be used before they are placed."""

    def __init__(self, is_listed: bool = True) -> None:
        """is_listed: whether to keep the lines of a listing, which takes a tenth of the time."""
        self.code = bytearray()
        self.lines: list[Line] = []
        self.is_listed = is_listed
        self.labels: dict[str, int] = {}
        """Label -> offset."""
        self.uses: list[tuple[int, str, int]] = []
        """Place of a 4-byte distance, label, and what to add."""
        self._constants: dict[bytes, str] = {}
        self._made = 0
        self.called: set[str] = set()
        """The labels that the code calls."""
        self.held: dict[Mem, int] = {}
        """Place of each of the last two numbers stored -> the register, which `vector` copies instead of loading it."""
        self.functions: set[str] = set()
        """Functions elsewhere, whose addresses the code reads from places with their names as labels."""

    # --- labels, constants, comments ---------------------------------------------------------------------------------

    def new_label(self, stem: str = "l") -> str:
        """A label that nothing else has."""
        self._made += 1
        return f"{stem}{self._made}"

    def label(self, name: str) -> None:
        """Place a label here."""
        self.held.clear()
        self.labels[name] = len(self.code)
        if self.is_listed:
            self.lines.append(Line(len(self.code), 0, f"{name}:"))

    def place(self) -> tuple[int, int, int]:
        """This place in the code, for `back_to`."""
        return len(self.code), len(self.lines), len(self.uses)

    def back_to(self, place: tuple[int, int, int]) -> None:
        """Forget all code from that place on."""
        self.held.clear()
        for parts, length in zip((self.code, self.lines, self.uses), place):
            del parts[length:]  # type: ignore[attr-defined]

    def comment(self, text: Callable[[], str]) -> None:
        """A line of the listing that is not code. Its text is made with the listing, because that takes long."""
        if self.is_listed:
            self.lines.append(Line(len(self.code), 0, "", (text,)))

    def constant(self, data: bytes) -> Mem:
        """The operand for constant data, which is placed after the code. Equal data share a place."""
        label = self._constants.setdefault(data, f"k{len(self._constants)}")
        return Mem(None, label=label)

    def function(self, name: str) -> Mem:
        """The operand for the address of a function elsewhere, which the loader fills in."""
        self.functions.add(name)
        return Mem(None, label=name)

    def finish(self) -> None:
        """Append constants and the places of addresses, and fill in all distances."""
        used = {name for _, name, _ in self.uses}  # not those of code that was taken back
        self.functions &= used
        self.code += bytes(-len(self.code) % 8)
        for name in sorted(self.functions):
            self.labels[name] = len(self.code)
            self.code += bytes(8)
        for data, name in sorted(self._constants.items(), key=lambda item: -min(64, len(item[0]))):
            if name not in used:
                continue
            self.code += bytes(-len(self.code) % min(64, max(8, 1 << (len(data) - 1).bit_length())))
            self.labels[name] = len(self.code)
            self.code += data
        for at, name, more in self.uses:
            struct.pack_into("<i", self.code, at, self.labels[name] - (at + 4) + more)

    def listing(self) -> Iterator[str]:
        """Address, bytes and text of each instruction; labels and comments on lines of their own."""
        for line in self.lines:
            if line.size:
                shown = self.code[line.offset : line.offset + line.size].hex()
                yield f"{line.offset:6x}  {shown:24}  {line}"
            else:
                yield str(line)

    # --- instructions ------------------------------------------------------------------------------------------------

    def _instruction(
        self, name: str, operands: tuple[Any, ...], start: Start, disp: int = 0, label: str = "", tail: bytes = b""
    ) -> None:
        """Append an instruction, and note it for the listing. tail: the bytes after the distance."""
        code, at = self.code, len(self.code)
        code += start.code
        if label:
            self.uses.append((len(code), label, disp - len(tail)))
            code += bytes(4)
        elif start.modrm is not None:
            is_near = -128 << start.shift <= disp < 128 << start.shift and not disp & (1 << start.shift) - 1
            mode = start.mode if not disp else 1 if is_near else 2
            code.append(start.modrm | mode << 6)
            code += start.sib
            if mode == 1:
                code.append(disp >> start.shift & 255)
            elif mode == 2:
                code += disp.to_bytes(4, "little", signed=True)
        code += tail
        if self.is_listed:
            self.lines.append(Line(at, len(code) - at, name, operands))

    def vector(
        self,
        name: str,
        to: Register,
        first: Optional[Vec],
        second: Union[Register, Mem],
        *,
        immediate: Optional[int] = None,
        mask: Optional[Mask] = None,
    ) -> None:
        """Append an instruction, or copy a held number. first: the operand in `vvvv`. mask: the lanes of vblendmpd."""
        if name == "vmovsd" and second in self.held:
            held = Vec(self.held[second], 16)
            if held.number != to.number:
                self.vector("vmovapd", Vec(to.number, 16), None, held)
            return
        if isinstance(second, Mem) and name.endswith("_store"):
            stored = {second: to.number} if name == "vmovsd_store" and not second.index else {}
            # Another place may overlap with this one, unless both are numbers at distances from one base.
            apart = [held for held in self.held.items() if stored and held[0].base == second.base]
            self.held = {**dict(apart[-1:]), **stored}
        elif self.held:
            self.held = {at: held for at, held in self.held.items() if held != to.number and not isinstance(to, Reg)}
        base, disp, index, scale, label, spread = second if isinstance(second, Mem) else (second, 0, None, 0, "", 0)
        start = _vector(name, to, first, base, index, scale, mask, spread > 0)
        tail = b"" if immediate is None else bytes((immediate,))
        self._instruction(name, (to, first, second, immediate, mask), start, disp, label, tail)

    def integer(self, name: str, to: Place, source: Union[Place, int, None] = None, by: Optional[int] = None) -> None:
        """Append an instruction of INTEGERS. by: the constant of a multiplication with three operands."""
        self.held.clear()
        row, tail = INTEGERS[name], b""
        operand = to
        if source is None or isinstance(source, int):
            (opcode, field, size), constant = row.constant, source or 0
            if opcode == b"\x81" and -128 <= constant < 128:
                opcode, size = b"\x83", 1
            tail = constant.to_bytes(size, "little", signed=True)
        elif isinstance(to, Mem):
            assert isinstance(source, Reg)
            opcode, field = row.store, source.number
        else:
            opcode, field, operand = row.load, to.number, source
        if by is not None:
            opcode, tail = b"\x69", by.to_bytes(4, "little", signed=True)
        base, disp, index, scale, label, _ = operand if isinstance(operand, Mem) else (operand, 0, None, 0, "", 0)
        start = _integer(row.prefix, opcode, field, base, index, scale)
        self._instruction(name, (to, source, by), start, disp, label, tail)

    # --- control -----------------------------------------------------------------------------------------------------

    @contextmanager
    def counted_down(self, counter: Reg) -> Iterator[None]:
        """A loop that runs as often as the counter says, at least once."""
        again = self.new_label()
        self.label(again)
        yield
        self.integer("sub", counter, 1)
        self.jump(again, "ne")

    @contextmanager
    def counted_up(self, index: Place, limit: Union[Place, int], step: int = 1, start: int = 0) -> Iterator[None]:
        """A loop in which the index goes from the start to the limit, and which runs at least once.

        RAX holds an index in memory while it is compared.
        """
        again = self.new_label()
        self.integer("mov", index, start)
        self.label(again)
        yield
        self.integer("add", index, step)
        if isinstance(index, Mem):
            self.integer("mov", RAX, index)
            index = RAX
        self.jump(again, "l", index, limit)

    @contextmanager
    def repeated(self) -> Iterator[str]:
        """Code that is repeated until it jumps to the label."""
        again, end = self.new_label(), self.new_label()
        self.label(again)
        yield end
        self.jump(again)
        self.label(end)

    @contextmanager
    def unless(self, condition: str, *compared: Union[Place, int]) -> Iterator[None]:
        """Code that is skipped if a condition holds, as in `jump`."""
        end = self.new_label()
        self.jump(end, condition, *compared)
        yield
        self.label(end)

    def jump(self, label: str, condition: str = "", *compared: Union[Place, int]) -> None:
        """Jump to a label, always or if a condition holds: of two operands, or of the last instruction."""
        if compared:
            first: Any = compared[0]
            self.integer("cmp", first, compared[1])
        opcode = bytes((0x0F, 0x80 | CONDITIONS[condition])) if condition else b"\xe9"
        self._instruction(f"j{condition or 'mp'}", (label,), Start(opcode), label=label)

    def call(self, label: str) -> None:
        """Call a label. `integer("call", place)` calls the address in memory."""
        self.held.clear()
        self.called.add(label)
        self._instruction("call", (label,), Start(b"\xe8"), label=label)

    def plain(self, name: str) -> None:
        """Append `ret`, or `vzeroupper`, which clears all but the lower 16 bytes of vector registers.

        Functions of libm may be slow otherwise.
        """
        self._instruction(name, (), Start({"ret": b"\xc3", "vzeroupper": b"\xc5\xf8\x77"}[name]))


class Start(NamedTuple):
    """The bytes of an instruction up to its distance."""

    code: bytes
    """All of them; for an operand in memory that has a base, up to the opcode."""
    modrm: Optional[int] = None
    """That of this operand, without its mode: 0 for no distance, 1 for one byte, 2 for four bytes."""
    mode: int = 0
    """The least mode: RBP and R13 require a distance."""
    sib: bytes = b""
    shift: int = 0
    """A distance of one byte counts in units of 2**shift bytes."""


@cache
def _vector(
    name: str,
    to: Register,
    first: Optional[Vec],
    base: Optional[Register],
    index: Optional[Reg],
    scale: int,
    mask: Optional[Mask],
    is_spread: bool,
) -> Start:
    """A vector instruction. base: that of the operand in memory, or the last operand itself if scale is 0."""
    row, field, vvvv, last = TABLE[name], to.number, first.number if first else 0, base.number if base else 0
    sized = to if isinstance(to, Vec) else first or base
    size = 8 if row.scalar else sized.size if isinstance(sized, Vec) else 16
    r, x, b = field >> 3 & 1, index.number >> 3 if index else last >> 4, last >> 3 & 1
    high = (r ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | row.map
    low = (~vvvv & 15) << 3 | _PREFIXES[row.prefix]
    if row.evex or size == 64 or max(field, vvvv, last) > 15 or isinstance(to, Mask) or mask or is_spread:
        lanes = _LENGTHS[size] << 5 | is_spread << 4 | (vvvv >> 4 ^ 1) << 3 | (mask.number if mask else 0)
        start = bytes((0x62, high | (field >> 4 ^ 1) << 4, row.wide << 7 | low | 4, lanes, row.opcode))
        # A distance counts in units of the operand's size.
        shift = 3 if row.scalar or is_spread or not row.narrow else (size // row.narrow).bit_length() - 1
        return _with_operand(start, field, base, index, scale, shift)
    low |= _LENGTHS[size] << 2
    is_short = row.map == 1 and not x and not b and not row.wide_vex
    start = bytes((0xC5, (r ^ 1) << 7 | low) if is_short else (0xC4, high, row.wide_vex << 7 | low))
    return _with_operand(start + bytes((row.opcode,)), field, base, index, scale)


@cache
def _integer(
    prefix: bytes, opcode: bytes, field: int, base: Optional[Register], index: Optional[Reg], scale: int
) -> Start:
    """An instruction for integers. base: as for `_vector`."""
    x, b = (register.number >> 3 if register else 0 for register in (index, base))
    start = (*prefix[:-1], prefix[-1] | field >> 3 << 2 | x << 1 | b, *opcode)
    return _with_operand(bytes(start), field, base, index, scale)


def _with_operand(
    code: bytes, field: int, base: Optional[Register], index: Optional[Reg], scale: int, shift: int = 0
) -> Start:
    """Add ModRM and SIB for the last operand."""
    low = (field & 7) << 3
    if base is None:
        return Start(code + bytes((low | 5,)))
    last = base.number & 7
    if not scale:
        return Start(code + bytes((0xC0 | low | last,)))
    sib = b""
    if index or last == 4:
        sib = bytes((scale.bit_length() - 1 << 6 | (index.number & 7 if index else 4) << 3 | last,))
    return Start(code, low | (4 if sib else last), int(last == 5), sib, shift)
