"""What ``torch.utils.data._utils.collate`` has beside leafgrad's functions."""

import re

from leafgrad.utils.data.collate import collate_tensor_fn, default_collate_fn_map

__all__ = ["collate_tensor_fn", "default_collate_fn_map", "np_str_obj_array_pattern"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy's arrays that make no tensors
