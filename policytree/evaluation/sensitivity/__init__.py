"""How strong a hidden confounder would have to be, and how different another population.

contrasts.py               a policy, alone or against a baseline rule, beside what was observed: what sensitivity
                           analyses start from
exclusion.py               how large a direct effect of offers on outcomes must be to undo a conclusion from an
                           instrument
judged_contrasts.py        subjects of a sensitivity analysis: a fixed rule, or the learnt rules of a held-out table,
                           by repetitions
marginal.py                would the conclusion survive a hidden confounder? Bounds by the marginal sensitivity
                           model
omitted_variables.py       how strong must an omitted variable be to undo the conclusion? Bounds from the scores of the
                           estimate, of sigma^2 and of nu^2, with covariates to compare it with
repeated_bounds.py         bounds from the repetitions of a cross-fitting, put together as held-out values are
sharp_bounds.py            the marginal sensitivity model's sharp bounds: what is known from covariates limits what
                           a confounder can do
simple_bounds.py           the marginal sensitivity model's simple bounds: self-normalised means with weights moved
                           to their extremes
transport.py               how far may effects in a target differ from those of the study? By how much, and by which
                           odds
"""
