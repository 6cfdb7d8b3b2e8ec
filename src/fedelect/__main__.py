"""`python -m fedelect` is the command `fedelect`."""

from fedelect.cli import main

if __name__ == "__main__":
    main()
