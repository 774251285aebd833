"""`python -m truepair` is `truepair`."""

import sys

from truepair.cli.main import main

sys.exit(main())
