"""Python numbers in place of NumPy scalars, where a function or a loop works on numbers only."""

from . import regions as regions
from . import statements as statements
