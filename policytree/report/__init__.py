"""The report of a study: ``sections`` say something, ``content`` is what is said; ``text`` and ``html`` show it."""
