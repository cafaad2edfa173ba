"""``python -m retrograd``."""

from .cli import main

raise SystemExit(main())
