"""``torch.fx.experimental.proxy_tensor``: nothing is traced."""

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """None: nothing is traced."""
