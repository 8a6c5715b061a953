"""Names of ``torch.utils.data._utils`` that leafgrad spells differently."""

__all__: list[str] = []
