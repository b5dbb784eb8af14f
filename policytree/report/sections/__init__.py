"""The sections of a report: functions from the material to :class:`policytree.report.content.Section`, by topic."""
