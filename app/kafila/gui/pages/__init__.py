"""The pages of the window. Each is made with (theme, send), fed whole snapshots, and sends commands."""
