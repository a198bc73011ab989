"""The one exception for input that a person can mend."""


class InputError(ValueError):
    """Bad input: says which value, where it stands, and what was expected.

    The command line prints the message alone and exits with code 2. Mistakes in the program raise
    other exceptions and keep their traceback.
    """
