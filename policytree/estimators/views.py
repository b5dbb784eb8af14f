"""What a fitted estimator with one tree can tell and show of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from policytree.tree import Tree

if TYPE_CHECKING:
    from policytree.plotting import PolicyTreeDisplay


class TreeViews:
    """Views of ``tree_``."""

    tree_: Tree

    def get_depth(self) -> int:
        """Largest number of splits on a path of the fitted tree."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the fitted tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def get_used_features(self) -> list[str]:
        """Return the names of the features that the fitted tree splits on, in the order of the columns."""
        check_is_fitted(self)
        return [self.tree_.features[j].name for j in self.tree_.used_features]

    def export_text(self, **options: Any) -> str:
        """Return the tree as indented text; options as in :func:`policytree.export.export_text`."""
        from policytree.export import export_text

        check_is_fitted(self)
        return export_text(self.tree_, **options)

    def export_graphviz(self, **options: Any) -> str:
        """Return the tree in the DOT language; options as in :func:`policytree.export.export_graphviz`."""
        from policytree.export import export_graphviz

        check_is_fitted(self)
        return export_graphviz(self.tree_, **options)

    def to_dict(self) -> dict:
        """Return the tree as plain Python values that JSON can hold."""
        from policytree.serialization import to_dict

        check_is_fitted(self)
        return to_dict(self.tree_)

    def to_json(self) -> str:
        """Return the tree as JSON; :func:`policytree.serialization.from_json` reads it."""
        from policytree.serialization import to_json

        check_is_fitted(self)
        return to_json(self.tree_)

    def plot(self, ax: Any = None, **options: Any) -> PolicyTreeDisplay:
        """Draw the tree with matplotlib; options as in :func:`policytree.plot_tree`."""
        from policytree.plotting import plot_tree

        check_is_fitted(self)
        return plot_tree(self, ax=ax, **options)
