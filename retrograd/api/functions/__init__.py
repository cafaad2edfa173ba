"""Function types: functions as differentiable values, and their cotangents."""
