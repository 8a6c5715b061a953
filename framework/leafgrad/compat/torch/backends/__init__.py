"""``torch.backends``: switches of libraries that PyTorch uses and leafgrad does not.

They choose among kernels that are not here, so any value of them is true of what runs; programs may set them.
"""

__all__: list[str] = []
