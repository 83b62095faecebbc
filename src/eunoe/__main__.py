"""`python -m eunoe`: the command line."""

from eunoe.cli import main

if __name__ == "__main__":
    main()
