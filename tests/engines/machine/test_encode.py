"""Every row of the table of instructions, with random operands, against an independent disassembler."""

import random
import re

import pytest

from zoomgrad.engines.machine.encode import CONDITIONS, INTEGERS, RCX, RDX, RSP, TABLE, Assembler, Mask, Mem, Reg, Vec

capstone = pytest.importorskip("capstone")

pytestmark = pytest.mark.host

DISPLACEMENTS = (0, 4, 8, -8, 64, 128, -128, 1024, 100_000, -100_000)
WITHOUT_FIRST = {"vmovupd", "vmovupd_store", "vmovsd", "vmovsd_store", "vmovapd", "vbroadcastsd", "vmovddup"}
WITHOUT_FIRST |= {"vucomisd", "vpmovzxbd", "vcvtdq2pd", "vsqrtpd", "vrsqrt14pd"}
SPREADS = {"vmulpd", "vaddpd", "vfmadd231pd"}
IN_MEMORY = {"vmovupd_store", "vmovsd", "vmovsd_store", "vmovddup", "vpmovzxbd"}


def disassembled(code):
    """The instructions, as (mnemonic, operands)."""
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    found = list(engine.disasm(bytes(code), 0))
    assert sum(each.size for each in found) == len(code), bytes(code).hex()
    return [(each.mnemonic, each.op_str) for each in found]


def memory(rng):
    index = rng.choice([None, *(Reg(n) for n in range(16) if n != RSP.number)])
    scale = rng.choice([1, 2, 4, 8]) if index else 1
    return Mem(Reg(rng.randrange(16)), rng.choice(DISPLACEMENTS), index, scale)


def address(text):
    """An address as its parts: what is added, and how many times."""
    parts = {}
    for sign, part in re.findall(r"([+-]?)\s*([^+\-\s]+(?:\s*\*\s*[^+\-\s]+)?)", text):
        name, _, times = part.replace(" ", "").partition("*")
        if name.isdigit() and times:
            name, times = times, name
        count = int(times or 1) * (-1 if sign == "-" else 1)
        if re.fullmatch(r"0x[0-9a-f]+|\d+", name):
            name, count = "", int(name, 0) * count
        parts[name] = parts.get(name, 0) + count
    return {name: count for name, count in parts.items() if count}


def operands(text):
    """The registers of an instruction's text, `rax` for `eax`; its address; and the lanes that read one double."""
    text = re.sub(r"\be(?=\w\w\b)", "r", re.sub(r"\b(r\d+)d\b", r"\1", text))
    inside = re.search(r"\[(.*)\]", text)
    outside = re.sub(r"\[.*?\]|\w+ ptr", "", text)
    registers = re.findall(r"[xyz]mm\d+|k\d|\br\w+", outside)
    return sorted(registers), address(inside[1]) if inside else None, re.findall(r"\{1to\d\}", text)


def instruction(name, rng):
    """One random instruction of that row, in its own assembler."""
    row, size = TABLE[name], rng.choice([16, 32, 64])
    wide = size == 64 or rng.random() < 0.3

    def vector(bytes_=None):
        return Vec(rng.randrange(32 if wide else 16), 8 if row.scalar else bytes_ or size)

    to, first, options = vector(), None if name in WITHOUT_FIRST else vector(), {}
    second = memory(rng) if name in IN_MEMORY or rng.random() < 0.5 else vector()
    if name in ("vblendvpd", "vcmpsd") or (name == "vcmppd" and size < 64 and rng.random() < 0.5):
        size = min(size, 32)
        to, first = (Vec(rng.randrange(16), 8 if row.scalar else size) for _ in range(2))
        second = second if isinstance(second, Mem) else Vec(rng.randrange(16), to.size)
        options["immediate"] = rng.randrange(16) << 4 if name == "vblendvpd" else rng.randrange(31)
    elif name in ("vshuff64x2", "vperm2f128"):
        of_16 = name == "vperm2f128"
        size = 32 if of_16 else max(32, size)
        to, first = (Vec(rng.randrange(16 if of_16 else 32), size) for _ in range(2))
        second = second if isinstance(second, Mem) else Vec(rng.randrange(16 if of_16 else 32), size)
        options["immediate"] = rng.randrange(256)
    elif name == "vcmppd":
        to, options["immediate"] = Mask(rng.randrange(8)), rng.randrange(31)
    elif name == "vblendmpd":
        options["mask"] = Mask(rng.randrange(1, 8))
    elif name == "vbroadcastsd":
        to = to._replace(size=max(32, size))
        second = second if isinstance(second, Mem) else second._replace(size=16)
    elif name == "vmovddup":
        to = Vec(rng.randrange(16), 16)
    elif name == "vcvtdq2pd":
        second = second._replace(size=max(16, size // 2)) if isinstance(second, Vec) else second
    elif name in ("vmovmskpd", "kmovb"):
        to, first = Reg(rng.randrange(16)), None
        second = Vec(rng.randrange(16), min(32, size)) if name == "vmovmskpd" else Mask(rng.randrange(8))
    elif name in SPREADS and isinstance(second, Mem) and rng.random() < 0.5:
        second = second._replace(spread=size // 8)
    elif name == "vcvtsi2sd":
        second = second if isinstance(second, Mem) else Reg(rng.randrange(16))
    code = Assembler()
    code.vector(name, to, first, second, **options)
    return code


@pytest.mark.parametrize("name", TABLE)
def test_a_vector_instruction(name):
    rng = random.Random(name)
    for _ in range(200):
        code = instruction(name, rng)
        text = str(code.lines[0])
        ((mnemonic, found),) = disassembled(code.code)
        wanted = name.replace("_store", "")
        assert mnemonic == wanted or (wanted[:4] == "vcmp" == mnemonic[:4] and mnemonic[-2:] == wanted[-2:]), text
        if name == "vblendvpd":
            last = int(text.rpartition(", ")[2]) >> 4
            text = f"{text.rpartition(',')[0]}, {'xy'[code.lines[0].operands[0].size == 32]}mm{last}"
        assert operands(found) == operands(text.partition(" ")[2]), (text, found)


def integers(name, rng):
    """All forms of an instruction for integers, in one assembler."""
    code, row = Assembler(), INTEGERS[name]
    a, b, m = Reg(rng.randrange(16)), Reg(rng.randrange(16)), memory(rng)
    if row.load:
        code.integer(name, a, m)
        if name not in ("lea", "movsxd", "movzx"):
            code.integer(name, a, b)
    if row.store:
        code.integer(name, m, a)
    opcode, _, size = row.constant
    if opcode and not size:
        code.integer(name, m)
    elif opcode:
        number = rng.choice([1, -1, 127, 128, -129, 70_000]) if size > 1 else rng.randrange(1, 63)
        code.integer(name, a, number)
        if size > 1:
            code.integer(name, m, number)
    if name == "imul":
        code.integer(name, a, b, rng.choice([1, -1, 70_000]))
        code.integer(name, a, m, rng.choice([1, -1, 70_000]))
    return code


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_instruction(name):
    rng = random.Random(name)
    for _ in range(100):
        code = integers(name, rng)
        for (mnemonic, found), line in zip(disassembled(code.code), code.lines, strict=True):
            assert mnemonic == name.split()[0], (str(line), mnemonic, found)
            assert operands(found) == operands(str(line).removeprefix(name)), (str(line), found)


def test_jumps_and_constants_reach_their_labels():
    code = Assembler()
    code.label("start")
    for condition in CONDITIONS:
        code.jump("end", condition)
    code.vector("vmovupd", Vec(1, 64), None, code.constant(bytes(range(64))))
    code.vector("vcmppd", Mask(1), Vec(0, 64), code.constant(bytes(64)), immediate=4)
    code.call("start")
    code.label("end")
    code.plain("ret")
    code.finish()
    content, labels = bytes(code.code), code.labels
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    found = list(engine.disasm(content[: labels["end"] + 1], 0))
    assert [int(each.op_str, 0) for each in found[: len(CONDITIONS)]] == [labels["end"]] * len(CONDITIONS)
    for each, label in zip(found[len(CONDITIONS) :], ("k0", "k1")):
        distance = int(re.search(r"rip \+ (0x[0-9a-f]+)", each.op_str)[1], 0)
        assert each.address + each.size + distance == labels[label]
        assert labels[label] % 64 == 0
    assert int(found[-2].op_str, 0) == labels["start"]


def test_code_that_is_taken_back_leaves_nothing():
    code = Assembler()
    code.vector("vmovupd", Vec(1, 16), None, code.constant(bytes(16)))
    start = code.place()
    code.vector("vmovupd", Vec(1, 16), None, code.constant(bytes(range(16))))
    code.integer("mov", Reg(0), code.function("exp"))
    code.back_to(start)
    code.finish()
    assert code.code == code.code[:16] + bytes(16)
    assert not code.functions  # these have places, too


BETWEEN = {
    "a label": lambda code: code.label("l"),
    "a call": lambda code: code.call("f"),
    "an address": lambda code: code.integer("add", RDX, 8),
    "code that is taken back": lambda code: code.back_to((0, 0, 0)),
    "an address from a vector": lambda code: code.vector("vmovmskpd", RDX, None, Vec(1, 32)),
    "another number in the register": lambda code: code.vector("vaddsd", Vec(0, 8), Vec(1, 8), Vec(1, 8)),
    "a store of a vector": lambda code: code.vector("vmovupd_store", Vec(1, 32), None, Mem(RDX)),
    "a store at an index": lambda code: code.vector("vmovsd_store", Vec(1, 8), None, Mem(RDX, 0, RCX)),
    "a store at another address": lambda code: code.vector("vmovsd_store", Vec(1, 8), None, Mem(RCX)),
    "nothing": lambda code: code.vector("vmovsd_store", Vec(1, 8), None, Mem(RDX, 16)),
}


@pytest.mark.parametrize("what", BETWEEN)
def test_a_load_copies_a_register_until_its_place_may_change(what):
    code = Assembler()
    code.vector("vmovsd_store", Vec(0, 8), None, Mem(RDX, 8))
    BETWEEN[what](code)
    code.vector("vmovsd", Vec(2, 8), None, Mem(RDX, 8))
    assert code.lines[-1].name == ("vmovapd" if what == "nothing" else "vmovsd")
