"""``python -m leafgrad``."""

import sys

from leafgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
