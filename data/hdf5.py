"""HDF5 files that are either whole or absent: written under a temporary name, flushed to disk, renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import h5py
import numpy as np

from . import schema
from .errors import UserError

CHUNK_BYTES = 1 << 20
SPARE_BYTES = 1 << 20  # for what HDF5 adds to the arrays
MAX_NAME_BYTES = 200  # leaves room for the marks of a temporary name


def fsync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_output(path: Path, force: bool) -> None:
    """Refuse an output that could not be written, before the long work that leads to it.

    Raises:
        UserError: `path` exists and `force` is false, or it is a folder, or its folder cannot be written.
    """
    path = Path(path)
    if len(os.fsencode(path.name)) > MAX_NAME_BYTES:
        raise UserError(f"{path}: expected a name of at most {MAX_NAME_BYTES} bytes, got {len(os.fsencode(path.name))}")
    if path.is_dir():
        raise UserError(f"{path} is a folder; expected the name of a file to write")
    if path.exists() and not force:
        raise UserError(f"{path} exists already; choose another name or give --force to replace it")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise UserError(f"cannot write {path}: {folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"cannot write {path}: no permission to write into {folder}")


@contextlib.contextmanager
def replace_atomically(path: Path, force: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; a clean exit renames it to `path`, an error removes it.

    Raises:
        UserError: `path` exists and `force` is false, or its folder cannot be written.
    """
    path = Path(path)
    check_output(path, force)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        fsync(temporary)
        os.replace(temporary, path)
        fsync(path.parent)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def create_file(path: Path, format_name: str, force: bool = True) -> Iterator[h5py.File]:
    """Yield a new HDF5 file of the given format, which appears at `path` only when it is complete."""
    # From version 1.10 on HDF5 has checksums on its metadata too, such as on where the chunks lie.
    with replace_atomically(path, force) as temporary, h5py.File(temporary, "w", libver=("v110", "v110")) as file:
        file.attrs[schema.FORMAT] = format_name
        file.attrs[schema.FORMAT_VERSION] = schema.VERSIONS[format_name]
        file.attrs[schema.PROGRAM] = f"glpilot {version('glpilot')}"
        yield file


def require_room(path: Path, num_bytes: int) -> None:
    """Refuse to write more than the file system of `path` has room for. HDF5 does not survive a full disk.

    Raises:
        UserError: there is too little.
    """
    folder = next(parent for parent in [Path(path), *Path(path).absolute().parents] if parent.exists())
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < num_bytes + SPARE_BYTES:
        raise UserError(
            f"cannot write {path}: needs {(num_bytes + SPARE_BYTES) / 2**20:,.0f} MiB, found "
            f"{free_bytes / 2**20:,.0f} MiB free; make room, or choose another folder"
        )


def create_dataset(file: h5py.Group, name: str, shape: tuple[int, ...], dtype) -> h5py.Dataset:
    """An empty dataset in chunks of whole rows, with a checksum (fletcher32) on each chunk.

    Raises:
        UserError: the disk has no room for it.
    """
    if shape == () or 0 in shape:
        return file.create_dataset(name, shape=shape, dtype=dtype)
    itemsize = 16 if dtype == h5py.string_dtype() else np.dtype(dtype).itemsize
    row_bytes = max(1, int(np.prod(shape[1:], dtype=np.int64)) * itemsize)
    require_room(Path(file.file.filename), shape[0] * row_bytes)
    num_rows = min(shape[0], max(1, CHUNK_BYTES // row_bytes))
    checksum = dtype != h5py.string_dtype()
    return file.create_dataset(name, shape=shape, dtype=dtype, chunks=(num_rows, *shape[1:]), fletcher32=checksum)


def write_dataset(file: h5py.Group, name: str, array: np.ndarray) -> None:
    """Write a whole array of numbers, booleans or strings (any object or str dtype is stored as UTF-8)."""
    array = np.asarray(array)
    is_text = array.dtype.kind in "OUT"
    dtype = h5py.string_dtype() if is_text else array.dtype
    dataset = create_dataset(file, name, array.shape, dtype)
    if is_text:
        require_room(Path(file.file.filename), sum(map(len, array.ravel().tolist())))
        dataset.attrs[schema.CHECKSUM] = _checksum_of_strings(array)
    dataset[...] = array.astype(object) if is_text else array


def read_dataset(file: h5py.Group, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Read rows `start` to `stop` of a dataset; strings come back as an object array of str."""
    try:
        dataset = file[name]
        if h5py.check_string_dtype(dataset.dtype):
            strings = dataset.asstr()[start:stop]
            if len(strings) == len(dataset) and dataset.attrs.get(schema.CHECKSUM) != _checksum_of_strings(strings):
                raise OSError("its checksum does not fit")
            return strings
        return dataset[start:stop]
    except KeyError:
        raise UserError(
            f"{file.file.filename}: dataset '{name}' is missing; the file is incomplete, make it again"
        ) from None
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise UserError(
            f"{file.file.filename}: dataset '{name}' cannot be read ({error}); the file is damaged, make it again"
        ) from error


def _checksum_of_strings(strings: np.ndarray) -> str:
    """HDF5 cannot checksum what a chunk only points to, so the checksum of strings is an attribute of theirs."""
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, len(strings), 1 << 16):
        digest.update("".join(f"{len(text)}:{text}" for text in strings[start : start + (1 << 16)]).encode())
    return digest.hexdigest()


def read_attribute(file: h5py.File, name: str):
    """Read an attribute of the file's root."""
    value = _attribute_or_none(file, name)
    if value is None:
        raise UserError(
            f"{file.filename}: attribute '{name}' is missing or damaged; the file is incomplete, make it again"
        )
    return value


def _attribute_or_none(file: h5py.File, name: str):
    try:
        return file.attrs[name]
    except (KeyError, OSError, UnicodeDecodeError):
        return None


@contextlib.contextmanager
def open_file(path: Path, format_name: str) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading and check that it is of the given format and version.

    Raises:
        UserError: there is no such file, or it is not HDF5, or of another format or version.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected a file of format {format_name}")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise UserError(f"{path}: not a readable HDF5 file ({error}); expected format {format_name}") from error
    with file:
        found = _attribute_or_none(file, schema.FORMAT)
        if found != format_name:
            raise UserError(f"{path}: expected a file of format {format_name}, found {found or 'another HDF5 file'}")
        found_version = _attribute_or_none(file, schema.FORMAT_VERSION)
        if found_version != schema.VERSIONS[format_name]:
            raise UserError(
                f"{path}: expected format version {schema.VERSIONS[format_name]}, found {found_version}; "
                "make the file again with this version of glpilot"
            )
        yield file
