"""``policytree warmup``: compile the search beforehand."""

from __future__ import annotations

import typer

from policytree.cli.frame import DebugOption


def warmup(debug: DebugOption = False) -> None:
    """Compile the search for every kind of problem beforehand: for images and shared machines."""
    from policytree.born_again.needed_kernels import BORN_AGAIN
    from policytree.common.progress import stage_progress
    from policytree.solvers.core.compilation import all_kernels, kernel_folder, load_kernels
    from policytree.solvers.kernels.compiling import SEPARATE
    from policytree.solvers.kernels.precompiled import precompiled

    with stage_progress():
        seconds = load_kernels([*all_kernels(), (BORN_AGAIN, "")])
        folder = kernel_folder()
    shipped = precompiled(SEPARATE)
    if shipped.files and not seconds:
        typer.echo(f"The search came compiled with this installation, in {shipped.folder}.")
        return
    if shipped.reason and shipped.folder.is_dir():
        typer.echo(f"The compiled search of this installation is not used: {shipped.reason}.")
    done = f"compiled in {seconds:.0f} s" if seconds else "already compiled"
    if folder is None:
        typer.echo(
            f"The search is {done}, but for this run only: set NUMBA_CACHE_DIR to a folder that can be written to."
        )
        return
    typer.echo(
        f"The search is {done} and kept in {folder}. Later runs of this version load it from there, if they may write "
        "to that folder; NUMBA_CACHE_DIR names another one."
    )
