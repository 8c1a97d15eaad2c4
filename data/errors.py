"""The errors that a user can cause and mend."""

from __future__ import annotations


class UserError(ValueError):
    """Wrong input, config or environment: the command prints the message as one line and exits with code 2.

    The message names the key or the file, what was expected, what was found, and what to do about it.
    """


def describe(error: UserError | OSError) -> str:
    """The line for the user: our own message, or the file and what the system says of it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())
