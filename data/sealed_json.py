"""JSON files that carry a format version and a checksum of their own content, so that damage and edits are noticed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .errors import UserError
from .hdf5 import replace_atomically

FORMAT_VERSION = "format_version"
CHECKSUM = "checksum"


def write_sealed(path: Path, version: int, content: dict[str, Any]) -> None:
    """Write a JSON object between its format version and its checksum; the file appears when it is complete."""
    sealed = {FORMAT_VERSION: version, **content, CHECKSUM: checksum_of(content)}
    with replace_atomically(path) as temporary:
        temporary.write_text(json.dumps(sealed, indent=2) + "\n")


def read_sealed(path: Path, version: int) -> dict[str, Any]:
    """The content that `write_sealed` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        UserError: it cannot be read, or is of another version, or does not have its checksum.
    """
    try:
        content = json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict) or FORMAT_VERSION not in content:
        raise UserError(f"{path}: cannot be read (expected a JSON object with its {FORMAT_VERSION})")
    found = content.pop(FORMAT_VERSION)
    if found != version:
        raise UserError(f"{path}: expected format version {version}, found {found!r}")
    if content.pop(CHECKSUM, None) != checksum_of(content):
        raise UserError(f"{path}: does not have its checksum; it was damaged, or changed after it was written")
    return content


def checksum_of(content: dict[str, Any]) -> str:
    """A digest of a JSON object that does not depend on the order of its keys."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
