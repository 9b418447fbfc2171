"""Acts on jobs, and the reading of what came of them."""
