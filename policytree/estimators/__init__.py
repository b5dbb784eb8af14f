"""The scikit-learn estimators: validate, wire, delegate."""
