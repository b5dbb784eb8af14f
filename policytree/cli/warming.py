"""``policytree warmup``: compile the search beforehand."""

from __future__ import annotations

import typer

from policytree.cli.frame import DebugOption


def warmup(debug: DebugOption = False) -> None:
    """Compile the search for every kind of problem beforehand: for images and shared machines."""
    from policytree.progress import stage_progress
    from policytree.solvers.compilation import all_kernels, load_kernels

    with stage_progress():
        seconds = load_kernels(all_kernels())
    done = f"compiled in {seconds:.0f} s" if seconds else "already compiled"
    typer.echo(f"The search is {done}; every run of this version on this machine loads it from disk.")
