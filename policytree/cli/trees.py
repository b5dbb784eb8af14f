"""``policytree predict``, ``show`` and ``plot``: what one does with a saved tree."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from policytree.cli.frame import DebugOption

TreeArgument = Annotated[str, typer.Argument(metavar="TREE.json", help="A tree that `policytree design` saved.")]
PICTURE_KINDS = ("png", "pdf", "svg")


def predict(
    tree: TreeArgument,
    data: Annotated[str, typer.Argument(metavar="DATA.csv", help="CSV or Parquet file with the tree's columns.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="CSV file to write; printed if left out.")
    ] = None,
    column: Annotated[str, typer.Option(help="Name of the new column.")] = "policy",
    debug: DebugOption = False,
) -> None:
    """Add to every row of a table the treatment that a saved tree gives it."""
    from policytree.cli.files import read_tree
    from policytree.cli.predicting import with_policy
    from policytree.exceptions import UnseenValueWarning
    from policytree.serialization import save_text

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UnseenValueWarning)
        text = with_policy(read_tree(tree)[0], data, column).to_csv(index=False)
    for warning in heard:
        typer.echo(f"Warning: {warning.message}", err=True)
    if output is None:
        typer.echo(text, nl=False)
    else:
        save_text(output, text)


def show(tree: TreeArgument, debug: DebugOption = False) -> None:
    """Print a saved tree, and the certificate it came with."""
    from policytree.cli.files import read_tree
    from policytree.export import export_text
    from policytree.features import shown

    saved, everything = read_tree(tree)
    typer.echo(export_text(saved))
    certificate = everything.get("certificate")
    if isinstance(certificate, dict):
        typer.echo(
            "\n"
            + "\n".join(
                f"{shown(name):<10} {f'{value:.6g}' if isinstance(value, float) else shown(value)}"
                for name, value in certificate.items()
            )
        )


def plot(
    tree: TreeArgument,
    output: Annotated[str, typer.Option("--output", "-o", help="Picture to write: .png, .pdf or .svg.")] = "tree.png",
    title: Annotated[str | None, typer.Option(help="Title over the picture.")] = None,
    debug: DebugOption = False,
) -> None:
    """Draw a saved tree."""
    from policytree.cli.files import leaf_values, picture, read_tree
    from policytree.exceptions import InputError
    from policytree.plotting import PolicyTreeDisplay
    from policytree.serialization import save_bytes

    kind = output.rpartition(".")[2].lower()
    if kind not in PICTURE_KINDS:
        raise InputError(f"The picture '{output}' must end in .png, .pdf or .svg.")
    saved, everything = read_tree(tree)
    display = PolicyTreeDisplay(saved, leaf_values(everything)).plot(title=title, unit="rows")
    save_bytes(output, picture(display.figure_, kind))
