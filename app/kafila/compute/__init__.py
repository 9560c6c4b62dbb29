"""Everything that touches MLX, on the one thread that owns it: measuring, stages, the head."""
