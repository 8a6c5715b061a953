"""Names of ``torch.utils`` that leafgrad spells differently."""

__all__: list[str] = []
