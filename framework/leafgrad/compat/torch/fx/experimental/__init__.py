"""``torch.fx.experimental``: what asks whether something is traced hears no."""

__all__: list[str] = []
