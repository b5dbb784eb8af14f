"""A small dirty study of a programme that people were offered and could refuse, for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd


def vouchers(n: int = 280, seed: int = 0) -> pd.DataFrame:
    """Persons with several rows, gaps, a rare region; the programme helps the young who follow the offer."""
    rng = np.random.default_rng(seed)
    person = [f"p{k:03d}" for k in rng.integers(0, int(0.8 * n), n)]
    age = rng.integers(18, 70, n).astype(float)
    age[::13] = np.nan
    region = rng.choice(["north", "south", "island"], n, p=[0.6, 0.37, 0.03])
    offer, able = rng.choice(["none", "voucher"], n), rng.normal(size=n)
    would, always = rng.random(n) < np.clip(0.55 + 0.2 * able, 0, 1), rng.random(n) < 0.08
    taken = np.where(((offer == "voucher") & would) | always, "programme", "nothing")
    gain = np.where(np.nan_to_num(age, nan=40) < 42, 9.0, -4.0)
    score = 30 + 3 * able + gain * (taken == "programme") + 2 * rng.normal(size=n)
    return pd.DataFrame(
        {"person": person, "age": age, "region": region, "offer": offer, "taken": taken, "score": score.round(1)}
    )
