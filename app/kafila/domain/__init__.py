"""The nouns that every other room shares. Pure: no clock, no disk, no network.

- `Capability`: what one computer was measured to be able to do.
- `ModelSpec`: what a model costs, block by block.
- `Plan` or `Refusal`: who holds which blocks, or who is too small for it.
- commands: what a person can ask of the engine.
- `Snapshot`: everything that a person can see, as one immutable value.
"""
