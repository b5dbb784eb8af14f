"""``python -m policytree``: the command line."""

import sys

from policytree.cli import main

sys.exit(main())
