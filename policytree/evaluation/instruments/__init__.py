"""What offers do: to uptake, to outcomes, and to the outcomes of those who follow them.

summary.py      offers side by side (intention to treat), the effect on compliers, how strong the instrument is
offer_rule.py   the best tree over offers, net of what offers and takers cost
"""
