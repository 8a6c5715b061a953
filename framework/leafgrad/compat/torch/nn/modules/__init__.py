"""Names of ``torch.nn.modules`` that leafgrad spells differently."""

__all__: list[str] = []
