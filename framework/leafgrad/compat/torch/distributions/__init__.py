"""Names of ``torch.distributions`` that leafgrad spells differently."""

__all__: list[str] = []
