"""Names of ``torch.optim`` that leafgrad spells differently."""

__all__: list[str] = []
