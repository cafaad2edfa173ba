"""The face of the compiler: transforms, control, inspection."""
