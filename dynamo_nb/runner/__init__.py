"""The runner: which calls or statements of a cell go through torch.compile, and how they do."""
