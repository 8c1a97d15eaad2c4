"""The error that a user can cause and mend."""


class UserError(ValueError):
    """Wrong input, config or environment: the command prints the message as one line and exits with code 2.

    The message names the key or the file, what was expected, what was found, and what to do about it.
    """
