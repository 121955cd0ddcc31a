"""Ways to damage a file: functions of its path, by name."""

import io
import os
import shutil
import struct
import zipfile
import zlib

import numpy as np
from PIL import Image


def writes(content):
    """Puts something else in a file's place."""

    def damage(path):
        remove(path)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return damage


def cut(share):
    def damage(path):
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    return damage


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def as_folder(path):
    remove(path)
    path.mkdir()


def as_fifo(path):
    remove(path)
    os.mkfifo(path)


def as_link(to):
    def damage(path):
        remove(path)
        path.symlink_to(path.name if to == "itself" else to)

    return damage


def as_sparse(path):
    """A file of 64 GB that takes no room."""
    remove(path)
    with path.open("wb") as file:
        file.truncate(1 << 36)


# What no reader of files should stumble over.
NO_FILES = {
    "missing": remove,
    "a folder": as_folder,
    "a FIFO": as_fifo,
    "a device": as_link("/dev/zero"),
    "an empty device": as_link("/dev/null"),
    "a link to itself": as_link("itself"),
}
DAMAGED = {
    "empty": writes(b""),
    "bytes at random": writes(np.random.default_rng(0).bytes(5000)),
    "zeros": writes(bytes(5000)),
    "64 GB": as_sparse,
}
JSON = {
    **DAMAGED,
    "cut short": cut(0.5),
    "null": writes("null"),
    "a list": writes("[]"),
    "a number": writes("3"),
    "a text": writes('"text"'),
    "an empty object": writes("{}"),
    "not a number": writes("NaN"),
    "deep lists": writes("[" * 200_000),
    "deep objects": writes('{"a":' * 200_000),
    "a number of 5,000 digits": writes('{"version": ' + "9" * 5000 + "}"),
    "UTF-16": writes('{"version": 1}'.encode("utf-16")),
    "half a letter": writes(b'{"version": "\xc3'),
    "two objects": writes("{}{}"),
}


def arrays_of(path):
    with np.load(path, allow_pickle=True) as archive:
        return {name: archive[name] for name in archive.files}


def with_array(name, change):
    """Replaces an array of an .npz file; `change` makes the new one of the old one."""

    def damage(path):
        arrays = arrays_of(path)
        new = change(arrays.pop(name, None))
        if new is not None:
            arrays[name] = new
        np.savez(path, **arrays)

    return damage


def with_member(name, content):
    """Replaces a member of a zip file by bytes."""

    def damage(path):
        with zipfile.ZipFile(path) as archive:
            members = {x: archive.read(x) for x in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for member, old in members.items():
                archive.writestr(member, content if member == name else old)

    return damage


def npy_header(shape, descr="<f4"):
    """The beginning of an .npy file whose array is not there."""
    file = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def bomb(name):
    """Three gigabytes of zeros that take three megabytes."""

    def damage(path):
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        head = npy_header((3 << 28,))
        first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
        block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
        packed = first + (3 << 10) * block + packer.flush()
        _raw_zip(path, f"{name}.npy", packed, len(head) + (3 << 30), 0)

    return damage


def claims(name, size):
    """A member that claims to be as large as that when it is unpacked."""

    def damage(path):
        packed = zlib.compress(npy_header((size // 4,)))[2:-4]
        _raw_zip(path, f"{name}.npy", packed, size, 0)

    return damage


def _raw_zip(path, name, packed, size, checksum):
    name = name.encode()
    extra = struct.pack("<HHQQ", 1, 16, size, len(packed))
    head = struct.pack(
        "<HHHHHIIIHH", 45, 0, 8, 0, 33, checksum, 2**32 - 1, 2**32 - 1, len(name), 20
    )
    local = b"PK\3\4" + head + name + extra
    central = b"PK\1\2\x2d\0" + head + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name + extra
    end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    path.write_bytes(local + packed + central + b"PK\5\6" + end)


def arrays(name):
    """Ways to damage an .npz file by its array of that name."""

    def typed(dtype):
        return with_array(name, lambda x: np.zeros(x.shape, dtype))

    return {
        **DAMAGED,
        "cut short": cut(0.5),
        "without its end": cut(0.97),
        "a zip file of text": _zip_of_text,
        "an .npy file": _plain_npy,
        "an array is missing": with_array(name, lambda _: None),
        "objects": typed(object),
        "texts": typed("U3"),
        "bytes": typed("S3"),
        "complex numbers": typed(complex),
        "dates": typed("M8[s]"),
        "records": typed([("a", "f4"), ("b", "i4")]),
        "an axis more": with_array(name, lambda x: x[None]),
        "a row less": with_array(name, lambda x: x[1:] if x.ndim else x.reshape(1)[1:]),
        "no numbers at all": with_array(name, lambda x: x.reshape(-1)[:0]),
        "a member of text": with_member(f"{name}.npy", b"text"),
        "a shape without its numbers": with_member(f"{name}.npy", npy_header((10**6,))),
        "a shape of 4 TB": with_member(f"{name}.npy", npy_header((10**6, 10**6))),
        "a shape beyond 64 bits": with_member(f"{name}.npy", npy_header((10**12, 10**12))),
        "a negative shape": with_member(f"{name}.npy", npy_header((-5,))),
        "a header of junk": with_member(f"{name}.npy", b"\x93NUMPY\x01\x00\x04\x00{{{{"),
        "a header of version 9": with_member(f"{name}.npy", b"\x93NUMPY\x09\x00\x04\x00{{{{"),
        "claims to unpack to 70 TB": claims(name, 70 * 10**12),
        "unpacks to 3 GB": bomb(name),
    }


def _zip_of_text(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("text.txt", "text")


def _plain_npy(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def picture(kind, size=(4, 4), **options):
    """An image of that kind, black."""
    file = io.BytesIO()
    Image.new("L", size).save(file, format=kind, **options)
    return file.getvalue()


def png(width, height, *, data=b""):
    """A PNG of one colour that claims to be as large as that."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def black_png(width, height):
    """As large as that, indeed."""
    return png(width, height, data=zlib.compress(bytes((1 + -(-width // 8)) * height), 1))
