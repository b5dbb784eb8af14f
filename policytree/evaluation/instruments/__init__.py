"""Effects of offers: on uptake, on outcomes, and on the outcomes of those who follow them.

summary.py      offers side by side (intention to treat), the effect on compliers, how strong the instrument is
offer_rule.py   the best tree over offers, net of what offers and takers cost
"""
