"""Python's numbers in place of NumPy's, where a function or a loop works on numbers alone."""

from . import regions as regions
from . import statements as statements
