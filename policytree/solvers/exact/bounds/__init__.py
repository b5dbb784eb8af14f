"""Lower bounds at the root: row duals by dual fitting, leaf counts, conflict pairs."""
