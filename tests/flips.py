"""Files in which one bit has changed: what reads them must notice, or find what was there."""

import itertools
import random


def with_one_bit_flipped(paths, count, seed=0):
    """Changes one bit in one of some files, `count` times over, and mends it each time.

    Args:
      paths: the files; each of their bytes is as likely to be hit.
      count: how many bits are tried, all different.
      seed: of the choice.

    Yields:
      The path and the number of the bit in it, while it is changed.
    """
    contents = {path: path.read_bytes() for path in paths}
    ends = list(itertools.accumulate(8 * len(content) for content in contents.values()))
    for place in random.Random(seed).sample(range(ends[-1]), count):
        path, end = next(x for x in zip(contents, ends, strict=True) if place < x[1])
        bit = place - end + 8 * len(contents[path])
        changed = bytearray(contents[path])
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        yield path, bit
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents[path])
