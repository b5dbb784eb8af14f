"""Times to an event, some of them censored, as outcomes that are known for everybody on average.

``outcome`` is what was observed and what is asked for (:class:`TimeToEvent`); ``product_limit`` the curves of Kaplan
and Meier, and ``curves`` those with intervals; ``marginal`` the outcomes that follow from them without covariates;
``grid`` the time at risk of every row in bins; ``hazards`` the models of events and of censoring, ``tree_tables`` the
boosted ones in all bins at once; ``survival_models`` the user's own in their place; ``transformation`` what takes the
place of a censored outcome; ``censoring`` all of it, cross-fitted.
"""
