"""Quick arithmetic for computers without a graphics chip: a C library, and the seam to mlx-lm.

`library` is the C side as Python sees it, `operations` does single operations of MLX with it,
`blocks` whole transformer blocks, and `seam` puts them where mlx-lm finds them. docs/cpu.md
explains it. Only `library` may be imported outside the MLX thread.
"""
