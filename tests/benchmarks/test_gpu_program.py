"""What is counted in the text of a compiled GPU program, by one that was counted by hand.

`gpu_program.hlo` was compiled for an A100, without a GPU, and what names the source left out:

    def layer(table, i):
        y = x @ w
        return table.at[i].add(jnp.tanh(y), mode="promise_in_bounds"), y.sum(-1)

    lax.scan(layer, table, index)

with table f32[64, 48], x f32[128, 96], w f32[96, 48], index s32[7, 128].
"""

import pathlib

import pytest

from benchmarks.gpu_program import Counts, Program, atomics, share_in_buffers, size_of

TEXT = (pathlib.Path(__file__).parent / "gpu_program.hlo").read_text()


def test_a_program_counted_by_hand():
    program = Program(TEXT)
    assert program.trips() == [7]
    counts = program.counts()
    # Two copies and a broadcast; a product, a sum, two updates and the counter in each layer.
    assert counts.launches == 3 + 7 * 5
    assert counts.flops == 7 * 2 * 128 * 96 * 48
    assert counts.scatter_adds == 7 * 128 * 48
    table, row, y = 4 * 64 * 48, 4 * 128, 4 * 128 * 48
    product = 4 * 128 * 96 + 4 * 96 * 48 + y
    # Of what is sliced, a slice; of a stack, the entry; the table, to which is added, twice.
    layer = product + (y + row) + (row + 4 + row) + (table + y + row + 4 + table) + (4 + 4)
    assert counts.bytes == (4 + 4) + 2 * table + 7 * row + 7 * layer


def test_counts_add_up():
    assert Counts(1, 2, 3, 4) * 2 + Counts(1, 0, 0, 1) == Counts(3, 4, 6, 9)


def test_a_loop_must_say_how_often_it_runs():
    with pytest.raises(ValueError, match=r"the loop while\.6 does not say how often"):
        Program(TEXT.replace('"known_trip_count"', '"other"')).counts()


def test_what_is_no_program():
    with pytest.raises(ValueError, match="no ENTRY computation"):
        Program("something else")


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[2,3]{1,0}", 24),
        ("pred[]", 1),
        ("(s32[], bf16[4]{0}, f8e4m3fn[8]{0})", 4 + 8 + 8),
        ("u4[6]{0}", 3),
        ("token[]", 0),
    ],
)
def test_sizes(shape, size):
    assert size_of(shape) == size


def test_the_longest_branch_counts():
    text = """HloModule branches

%one (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %copy.1 = f32[4]{0} copy(%x)
}

%two (y: f32[4]) -> f32[4] {
  %y = f32[4]{0} parameter(0)
  %copy.2 = f32[4]{0} copy(%y)
  ROOT %copy.3 = f32[4]{0} copy(%copy.2)
}

ENTRY %main (p: s32[], z: f32[4]) -> f32[4] {
  %p = s32[] parameter(0)
  %z = f32[4]{0} parameter(1)
  ROOT %either = f32[4]{0} conditional(%p, %z, %z), branch_computations={%one, %two}
}
"""
    assert Program(text).counts() == Counts(2, 4 * 16)


THUNKS = """000: kCommandBuffer [source       | next=003 (1)]
    001: kCustomKernel [source        | next=002 (1)] loop_fusion grid: [225, 1, 1]
    002: kCopy         [prev=001 (1)  | sink        ] MemcpyDeviceToDeviceCmd
003: kWhile         [prev=000 (1) | next=000 (1)]
condition:
    004: kCustomKernel [source | sink] loop_compare_fusion grid: [1, 1, 1]
  body:
    000: kCommandBuffer [source       | next=006 (1)]
        005: kKernel       [source        | sink] kernel=gemm_fusion_dot
    006: kWhile         [prev=000 (1) | next=000 (1)]
condition:
        007: kCustomKernel [source | sink] loop_compare_fusion grid: [1, 1, 1]
      body:
        008: kCustomKernel [source | sink] loop_add_fusion grid: [1, 1, 1]
    009: kCustomKernel [source       | sink        ] loop_fusion grid: [1, 1, 1]
010: kCopy          [source       | sink        ] (no description)
"""


def test_share_in_command_buffers():
    # Two before the loop; one of each ten trips; not the three trips of the loop within, the
    # kernel after it, nor the last copy. Conditions do not run.
    assert share_in_buffers(THUNKS, [10, 3]) == (2 + 10) / (2 + 10 * (1 + 3 + 1) + 1)
    with pytest.raises(ValueError, match="fewer loops"):
        share_in_buffers(THUNKS, [10, 3, 2])


def test_atomics():
    ptx = """
    atom.relaxed.sys.global.add.f32 	%r36, [%rd14], %r32;
    red.global.add.f32 [%rd1], %f1;
    atom.global.relaxed.cas.b32 %r5, [%rd2], %r3, %r4;
    ld.shared.v2.b32 	{%r226, %r227}, [%rd54];
    add.f32 %f1, %f2, %f3;
"""
    assert atomics(ptx) == {"native": 2, "compare-and-swap": 1}
