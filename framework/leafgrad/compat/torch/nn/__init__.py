"""Names of ``torch.nn`` that leafgrad spells differently."""

__all__: list[str] = []
