"""How strong a hidden confounder would have to be."""
