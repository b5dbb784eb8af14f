"""What a report says, a part a file; each makes :class:`policytree.report.content.Section` from the material."""
