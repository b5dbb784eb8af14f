"""The tree, and everything that reads or exports one."""
