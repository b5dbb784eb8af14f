"""Trees as dictionaries and strict JSON, and back; files that are written whole, or together, or not at all."""

from policytree.serialization.files import save_bytes, save_text, whole_file
from policytree.serialization.together import settle, write_together
from policytree.serialization.trees import check_tree, from_dict, from_json, to_dict, to_json

__all__ = [
    "check_tree", "from_dict", "from_json", "save_bytes", "save_text", "settle", "to_dict", "to_json", "whole_file",
    "write_together",
]  # fmt: skip
