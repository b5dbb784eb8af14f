"""``policytree predict``, ``show`` and ``plot``: commands on a saved tree."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from policytree.cli.first_checks import check_first
from policytree.cli.frame import DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.exceptions import InputError, quoted

TreeArgument = Annotated[str, typer.Argument(metavar="TREE.json", help="A tree that `policytree design` saved.")]
WIDEST_NAME = 20  # letters of a fact's name that others are aligned with
PICTURE_KINDS = ("png", "pdf", "svg")
OTHER_KINDS = (".parquet", ".pq", ".xlsx", ".gz", ".bz2", ".xz", ".zip", ".zst")


@takes_options(otherwise="as in the design")
def predict(
    tree: TreeArgument,
    data: Annotated[str, typer.Argument(metavar="DATA.csv", help="Table, as for design, with the tree's columns.")],
    reading: Reading,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write; printed if left out.")
    ] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="Name of the new column.")] = "policy",
    debug: DebugOption = False,
) -> None:
    """Add to every row of a table the treatment that a saved tree gives it. Files may be larger than memory.

    With the regime.json of a design of several decisions, the table has one row per person and decision, as that of the
    design: every row gets what the rule of its decision gives, given the person's earlier rows. A person's last row may
    be without treatment and outcome. Such a table is held in memory.
    """
    check_first(data, None)
    if output is not None and output.lower().endswith(OTHER_KINDS):
        raise InputError(f"The table '{output}' is written as CSV; name a file that ends in .csv.")
    from policytree.cli.files import read_saved, saved_verdict
    from policytree.common.progress import stage_progress
    from policytree.exceptions import UnseenValueWarning
    from policytree.serialization import whole_file

    if verdict := saved_verdict(read_saved(tree)):
        typer.echo(f"Verdict on this rule: {verdict}", err=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UnseenValueWarning)
        batches = _recommended(tree, data, column, reading)
        if output is None:
            for text in _csv_pieces(batches):
                typer.echo(text, nl=False)
        else:
            with whole_file(output) as file, stage_progress(lines=False) as display, display.stage("Predicting"):
                for text in _csv_pieces(batches):
                    file.write(text.encode("utf-8"))
                    display.detail(f"{file.tell() / 1e6:,.0f} MB written")
    for warning in heard:
        typer.echo(f"Warning: {warning.message}", err=True)


def _recommended(saved: str, data: str, column: str, reading: Reading) -> Iterator[Any]:
    """Tables with a tree's actions, or with what a regime gives at every decision."""
    from policytree.cli.files import is_regime, read_saved, read_tree
    from policytree.cli.predicting import policy_batches
    from policytree.cli.regimes.predicting import recommendations, saved_regime
    from policytree.exceptions import UnseenValueWarning
    from policytree.trees.unseen_values import sentence

    regime = read_saved(saved)
    if not is_regime(regime):
        tree, everything = read_tree(saved)
        design = everything.get("design")
        yield from policy_batches(tree, data, column, reading.otherwise(design if isinstance(design, dict) else {}))
        return
    table, unseen = recommendations(saved_regime(regime), data, column, reading)
    yield table
    for each, part in unseen:
        warnings.warn(sentence(each, part), UnseenValueWarning, stacklevel=2)


def _csv_pieces(batches: Iterable[Any]) -> Iterator[str]:
    """Tables as the text of one CSV file."""
    for k, batch in enumerate(batches):
        yield batch.to_csv(index=False, header=k == 0)


def show(
    tree: TreeArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print tree and certificate as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Print a saved tree, or the trees of a regime, and the certificates they came with."""
    from policytree.cli.files import is_regime, read_saved, read_tree, saved_verdict
    from policytree.cli.printing import print_json
    from policytree.regimes.export import regime_from_dict
    from policytree.serialization import to_dict
    from policytree.trees.text import export_text

    data = read_saved(tree)
    if is_regime(data):
        stages, proofs = regime_from_dict(data), data.get("certificates")
        proofs = proofs if isinstance(proofs, list) and len(proofs) == len(stages) else [None] * len(stages)
        if as_json:
            parts = zip(stages, proofs, strict=True)
            found = [{"name": n, "tree": to_dict(t), "certificate": proof} for (n, t), proof in parts]
            print_json({"stages": found, "verdict": data.get("verdict")})
            return
        if verdict := saved_verdict(data):
            typer.echo(f"Verdict: {verdict}\n")
        for k, ((name, each), proof) in enumerate(zip(stages, proofs, strict=True)):
            typer.echo(f"{chr(10) * (k > 0)}{name}\n{export_text(each)}")
            _print_certificate(proof)
        return
    saved, everything = read_tree(tree)
    certificate = everything.get("certificate")
    if as_json:
        print_json({"tree": to_dict(saved), "certificate": certificate, "verdict": everything.get("verdict")})
        return
    if verdict := saved_verdict(everything):
        typer.echo(f"Verdict: {verdict}\n")
    typer.echo(export_text(saved))
    _print_certificate(certificate)


def _print_certificate(certificate: Any) -> None:
    """Print what was proved of a tree, if its file says so."""
    from policytree.data.features import shown

    if isinstance(certificate, dict):
        facts = {shown(name).replace("_", " "): value for name, value in certificate.items()}
        if facts.get("expected cost") == 0:  # no question costs anything
            del facts["expected cost"]
        width = min(max(map(len, facts), default=0), WIDEST_NAME)
        typer.echo()
        for name, value in facts.items():
            typer.echo(f"{name:<{width}}  {f'{value:.6g}' if isinstance(value, float) else shown(value)}")


def plot(
    tree: TreeArgument,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Picture to write: .png, .pdf or .svg.")
    ] = "tree.png",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title over the picture.")] = None,
    width: Annotated[
        str | None,
        typer.Option(
            metavar="column|page|INCHES",
            help="Width on paper: 3.5 or 7 inches, or so many; no text is then smaller than 7 points. Default: as wide "
            "as the tree needs.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|humanize",
            help="Names of columns and values: a CSV file with the columns name, label, unit, values "
            "(0=female; 1=male); or humanize, for names made readable.",
        ),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Draw a saved tree, and print a caption and the tree in words, to be copied with the picture."""
    kind = output.rpartition(".")[2].lower()
    if kind not in PICTURE_KINDS:
        raise InputError(f"The picture '{output}' must end in .png, .pdf or .svg.")
    inches = _inches(width)
    from policytree.cli.files import picture, read_tree, saved_fragile, saved_values, saved_verdict
    from policytree.plotting.trees import PolicyTreeDisplay
    from policytree.serialization import save_bytes
    from policytree.trees.labels import as_labels, labelled

    saved, everything = read_tree(tree)
    design = everything.get("design")
    treatment = design.get("treatment") if isinstance(design, dict) else None
    given = None if labels is None else as_labels(labels)
    columns = [treatment, *(feature.name for feature in saved.features)]
    if other := [name for name in given or () if name not in columns]:
        typer.echo(f"The tree has no column {', '.join(map(quoted, other))}, which the labels name.", err=True)
    saved = labelled(saved, given, treatment if isinstance(treatment, str) else "")
    display = PolicyTreeDisplay(saved, saved_values(everything), saved_fragile(everything, saved))
    display.plot(title=title, unit="rows", width=inches)
    save_bytes(output, picture(display.figure_, kind))
    verdict = saved_verdict(everything)
    typer.echo(f"Caption: {' '.join(filter(None, (verdict, display.caption_)))}\n\nIn words: {display.alt_}")
    typer.echo(f"The picture is {output}.", err=True)


def _inches(width: str | None) -> Any:
    """A width as :meth:`PolicyTreeDisplay.plot` takes it."""
    from policytree.cli.tables import number_in

    return width if width is None or (number := number_in(width)) is None else number
