"""The composition root: one program for the window, the terminal and the engine process."""
