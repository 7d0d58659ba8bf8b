"""``python -m gradspec``."""

from gradspec.cli import main

if __name__ == "__main__":
    main()
