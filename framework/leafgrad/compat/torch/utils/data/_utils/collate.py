"""What ``torch.utils.data._utils.collate`` has beside leafgrad's functions."""

import re

__all__ = ["np_str_obj_array_pattern"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy's arrays that make no tensors
