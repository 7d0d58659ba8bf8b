"""Files, caches and workers around the pure pipeline."""
