"""What a compiled GPU program does in one run, counted in its text.

XLA writes an optimised program down as HLO: computations, each a list of instructions. On a GPU an
instruction of the entry computation, or of a loop's body, is one kernel or copy; those of a fusion
are parts of its kernel. Loops say how often they run. So launches, bytes, products and scatters of
a run can be counted without a GPU. Atomic additions are seen in the PTX alone.
"""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator

_BITS = {"pred": 8, "s4": 4, "u4": 4, "bf16": 16, "c64": 64, "c128": 128, "token": 0}
# What only names, groups or waits for something: neither kernel nor copy.
_FREE = (
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"),
    *("opt-barrier", "add-dependency", "partition-id", "replica-id", "domain"),
)
# Thunks that are made of others.
_GROUPS = ("While", "Conditional", "Sequential")
_CONTRACTED = re.compile(r'lhs_contracting_dim(?:s=\{|ensions":\[)([^}\]]*)')
_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")


@dataclasses.dataclass(frozen=True)
class Counts:
    """What happens in one run of a program, or of a part of it.

    Attributes:
      launches: kernels and copies, each time that they run.
      bytes: read and written by them, what a kernel reads twice counted once.
      flops: of matrix products.
      scatter_adds: numbers that scatters add to others.
    """

    launches: int = 0
    bytes: int = 0
    flops: int = 0
    scatter_adds: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(x + y for x, y in zip(_numbers(self), _numbers(other), strict=True)))

    def __mul__(self, times: int) -> "Counts":
        return Counts(*(times * x for x in _numbers(self)))


@dataclasses.dataclass(frozen=True)
class Instruction:
    """A line of a computation: `name = shape opcode(operands), rest`."""

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    rest: str


class Program:
    """The text of a compiled program.

    Attributes:
      computations: instructions by name, by the name of their computation.
      entry: the name of the computation that runs.
    """

    def __init__(self, text: str) -> None:
        """Reads it; see `jax.stages.Compiled.as_text`."""
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.entry = ""
        current: dict[str, Instruction] = {}
        for line in text.splitlines():
            if head := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{\s*$", line):
                current = self.computations.setdefault(head[2], {})
                self.entry = head[2] if head[1] else self.entry
            elif instruction := _instruction(line):
                current[instruction.name] = instruction
        if not self.entry:
            raise ValueError(
                "the text has no ENTRY computation: it is not that of a compiled program"
            )

    def counts(self, computation: str = "") -> Counts:
        """What happens when a computation (the program) runs once."""
        inside, total = self.computations[computation or self.entry], Counts()
        for x in inside.values():
            callee, trips = self._callee(x)
            if callee:
                total += self.counts(callee) * trips
            elif _launched(x):
                total += self._kernel(x, inside)
        return total

    def trips(self, computation: str = "") -> list[int]:
        """How often each loop runs when it is reached: a loop, the loops in it, the next one."""
        found = []
        for x in self.computations[computation or self.entry].values():
            callee, trips = self._callee(x)
            if callee:
                found += [trips] * (x.opcode == "while") + self.trips(callee)
        return found

    def _callee(self, x: Instruction) -> tuple[str, int]:
        """The computation that an instruction runs kernel by kernel, if any, and how often."""
        if x.opcode == "conditional":  # which branch runs is not known: the longest
            branches = re.findall(
                r"(?:branch_computations=\{|_computation=)([^,}=]+(?:, %[^,}=]+)*)", x.rest
            )
            names = [name.strip(" %") for group in branches for name in group.split(",")]
            return max(names, key=lambda name: self.counts(name).launches), 1
        if x.opcode not in ("while", "call", "async-start"):
            return "", 1
        callee = re.search(r"(?:body|to_apply|calls|called_computation)=%?([\w.\-]+)", x.rest)
        assert callee is not None, x
        if x.opcode != "while":
            return callee[1], 1
        trips = re.search(r'"known_trip_count":\{"n":"?(\d+)', x.rest)
        if trips is None:
            raise ValueError(f"the loop {x.name} does not say how often it runs")
        return callee[1], int(trips[1])

    def _kernel(self, x: Instruction, inside: dict[str, Instruction]) -> Counts:
        if x.opcode != "fusion":
            return Counts(1, _moved(x, inside), _flops(x, inside), _scatter_adds(x, inside))
        bodies = [self.computations[name] for name in self._within(_fused(x))]
        return Counts(
            launches=1,
            bytes=_moved_by_fusion(bodies[0]),
            flops=sum(_flops(y, body) for body in bodies for y in body.values()),
            scatter_adds=sum(_scatter_adds(y, body) for body in bodies for y in body.values()),
        )

    def _within(self, computation: str) -> Iterator[str]:
        """A fused computation and those that it calls."""
        yield computation
        for x in self.computations[computation].values():
            if x.opcode == "fusion":
                yield from self._within(_fused(x))


def share_in_buffers(thunks: str, trips: list[int]) -> float:
    """The share of launches that are part of a command buffer, which a GPU starts as one.

    Args:
      thunks: XLA's list of what it starts, `thunk_sequence_after_thunk_passes.txt` of a dump.
      trips: of the loops, see `Program.trips`.
    """
    total = inside = 0
    left = iter(trips)
    # What lines that stand further right are part of: (column, times, in a buffer, counts).
    around = [(-1, 1, False, True)]
    loop = (-1, 1)
    for line in thunks.splitlines():
        text = line.lstrip()
        if text in ("condition:", "body:"):
            # A loop that knows how often it runs does not ask its condition.
            around.append((*loop, False, text == "body:"))
            continue
        if not (head := re.match(r"\d+: k(\w+)", text)):
            continue
        indent = len(line) - len(text)
        while around[-1][0] >= indent:
            around.pop()
        _, outer, buffered, counted = around[-1]
        if head[1] == "While":
            loop = (indent, outer * next(left))
        elif head[1] == "CommandBuffer":
            around.append((indent, outer, True, counted))
        elif counted and head[1] not in _GROUPS:
            total += outer
            inside += outer * buffered
    if next(left, None) is not None:
        raise ValueError("the list has fewer loops than the program")
    return inside / max(total, 1)


def atomics(ptx: str) -> Counter[str]:
    """Atomic additions in a PTX text: how many instructions are "native" or "compare-and-swap"."""
    kinds = {"add": "native", "cas": "compare-and-swap"}
    return Counter(kinds[kind] for kind in re.findall(r"\b(?:atom|red)\.\S*?\b(add|cas)\b", ptx))


def size_of(shape: str) -> int:
    """The bytes of an array, or of all arrays of a tuple, by its type: `f32[2,3]{1,0}`."""
    bits = 0
    for kind, dims in _ARRAY.findall(shape):
        width = _BITS[kind] if kind in _BITS else int(re.findall(r"\d+", kind)[0])
        bits += width * math.prod(map(int, filter(None, dims.split(","))))
    return bits // 8


def _instruction(line: str) -> Instruction | None:
    head = re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = ", line)
    if head is None:
        return None
    rest = re.sub(r"/\*.*?\*/", "", line[head.end() :])
    end = _closing(rest) if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    opcode, _, rest = rest.partition("(")
    end = _closing("(" + rest) - 1
    operands = re.findall(r"%([\w.\-]+)", rest[: end - 1])
    return Instruction(head[1], shape, opcode, tuple(operands), rest[end:])


def _closing(text: str) -> int:
    """Behind the bracket that closes the first one."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place + 1
    raise ValueError(f"a bracket is not closed: {text[:80]!r}")


def _launched(x: Instruction) -> bool:
    return x.opcode not in _FREE and not x.opcode.endswith(("-done", "-update"))


def _fused(x: Instruction) -> str:
    callee = re.search(r"calls=%?([\w.\-]+)", x.rest)
    assert callee is not None, x
    return callee[1]


def _moved_by_fusion(body: dict[str, Instruction]) -> int:
    users: dict[str, list[Instruction]] = {}
    for x in body.values():
        for operand in x.operands:
            users.setdefault(operand, []).append(x)
    root = list(body.values())[-1]
    roots = [body[name] for name in root.operands] if root.opcode == "tuple" else [root]
    read = sum(_read(x, users, body) for x in body.values() if x.opcode == "parameter")
    return read + sum(_written(_unwrapped(x, body), body) for x in roots)


def _read(x: Instruction, users: dict[str, list[Instruction]], body: dict[str, Instruction]) -> int:
    """What a kernel reads of its operand: slices where it slices, nothing of what it overwrites."""
    whole, total = size_of(x.shape), 0
    for user in users.get(x.name, []):
        if user.opcode == "bitcast":
            total += _read(dataclasses.replace(x, name=user.name), users, body)
        elif user.opcode in ("dynamic-slice", "slice", "gather") and user.operands[0] == x.name:
            total += size_of(user.shape)
        elif user.opcode == "dynamic-update-slice" and user.operands[0] == x.name:
            total += 0
        elif user.opcode == "scatter" and user.operands[0] == x.name:
            total += min(whole, size_of(body[user.operands[-1]].shape))
        else:
            total = whole
        if total >= whole:
            return whole
    return total


def _written(x: Instruction, body: dict[str, Instruction]) -> int:
    if x.opcode == "dynamic-update-slice":
        return size_of(body[x.operands[1]].shape)
    if x.opcode == "scatter":
        return min(size_of(x.shape), size_of(body[x.operands[-1]].shape))
    return size_of(x.shape)


def _unwrapped(x: Instruction, body: dict[str, Instruction]) -> Instruction:
    return _unwrapped(body[x.operands[0]], body) if x.opcode == "bitcast" else x


def _moved(x: Instruction, body: dict[str, Instruction]) -> int:
    """What an instruction that is a kernel by itself reads and writes."""
    if x.opcode in ("dynamic-slice", "slice", "gather"):
        return 2 * size_of(x.shape)
    if x.opcode == "dynamic-update-slice":
        return 2 * size_of(body[x.operands[1]].shape)
    if x.opcode == "scatter":
        return size_of(body[x.operands[-1]].shape) + 2 * _written(x, body)
    if x.opcode == "copy-start":
        return 2 * size_of(body[x.operands[0]].shape)
    if x.opcode == "custom-call" and x.shape.startswith("("):  # the last result is workspace
        results = _ARRAY.findall(x.shape)
        written = size_of(x.shape) - size_of("{}[{}]".format(*results[-1]))
    else:
        written = size_of(x.shape)
    return written + sum(size_of(body[name].shape) for name in dict.fromkeys(x.operands))


def _flops(x: Instruction, body: dict[str, Instruction]) -> int:
    contracted = _CONTRACTED.search(x.rest)
    if contracted is None or x.opcode not in ("dot", "custom-call"):
        return 0
    dims = _dims(body[x.operands[0]].shape)
    length = math.prod(dims[int(i)] for i in re.findall(r"\d+", contracted[1]))
    return 2 * length * math.prod(_dims(x.shape))


def _scatter_adds(x: Instruction, body: dict[str, Instruction]) -> int:
    return math.prod(_dims(body[x.operands[-1]].shape)) if x.opcode == "scatter" else 0


def _dims(shape: str) -> list[int]:
    """Of the first array."""
    first = _ARRAY.search(shape)
    assert first is not None
    return [int(n) for n in first[2].split(",") if n]


def _numbers(counts: Counts) -> list[int]:
    return [getattr(counts, field.name) for field in dataclasses.fields(counts)]
