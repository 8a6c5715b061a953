"""Names of ``torch.utils.data`` that leafgrad spells differently."""

__all__: list[str] = []
