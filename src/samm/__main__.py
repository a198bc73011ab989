"""`python -m samm`: the same as the command `samm`."""

from samm.cli import main

if __name__ == "__main__":
    main()
