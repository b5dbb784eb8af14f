"""The command line's options and the arguments of ``Study`` and its kinds: they name the same things."""

from __future__ import annotations

import dataclasses
import inspect
import re

import numpy as np
import pandas as pd
import pytest
import typer.main

from policytree import Study
from policytree.cli.app import app
from policytree.cli.judging import _with_design
from policytree.cli.study import options_of, study_from_dataset, study_of_table
from policytree.cli.study_options import COLUMNS, IN_PYTHON_ONLY, KINDS, STUDY, StudyOptions, option
from policytree.cli.wording import in_options
from policytree.exceptions import InputError
from policytree.study import (
    Event,
    MayBeMissing,
    Offered,
    Population,
    TimeToEvent,
    assignments,
    outcomes,
    populations,
)
from policytree.study.assignments import Assignment, Combined
from policytree.study.outcomes import Outcome
from tests.cli.running import run
from tests.study import test_study

OF_OFFERS = {"offer_cost", "taker_cost"}  # what a rule over offers costs: arguments of offer_rule


def options(command: str) -> set[str]:
    return {name for each in typer.main.get_command(app).commands[command].params for name in each.opts}


def kinds_of_a_study():
    """Every kind that a study takes, and the arguments that are more than the column of the outcome or treatment."""
    for name, kind in {**vars(outcomes), **vars(assignments), **vars(populations)}.items():
        if not (isinstance(kind, type) and issubclass(kind, (Outcome, Assignment, Population))):
            continue
        if not inspect.isabstract(kind):
            yield name, {each.name for each in dataclasses.fields(kind)} - {"column", "time"}


def test_design_names_the_same_things_as_study():
    code, *_ = run("design", "--help")
    described = re.findall(r"^    (\w+) : ", inspect.getdoc(Study) and Study.__doc__.split("Attributes\n")[0], re.M)
    assert code == 0 and [*inspect.signature(Study).parameters] == described and set(described) == set(STUDY)
    there = options("design")
    for argument, named in STUDY.items():
        assert argument in ("table", "name") or named, argument
        for each in named:
            assert option(each) in there, f"{argument} of Study"


def test_options_of_kinds_are_their_arguments():
    found = {name: arguments for name, arguments in kinds_of_a_study() if arguments and name not in IN_PYTHON_ONLY}
    in_python_only = {"Population": {"weights"}}
    assert {name: arguments - in_python_only.get(name, set()) for name, arguments in found.items()} == {
        name: set(arguments) for name, arguments in KINDS.items()
    }
    assert {option(each) for arguments in KINDS.values() for each in arguments.values()} <= options("design")


def test_every_option_is_an_argument_of_study_or_of_a_kind():
    said = {each for named in STUDY.values() for each in named} | {
        e for named in KINDS.values() for e in named.values()
    }
    asked = {each.name for each in dataclasses.fields(StudyOptions)}
    assert asked - OF_OFFERS <= said
    for command in ("check", "design"):
        assert {option(each) for each in asked} <= options(command)
    assert {option(each) for each in asked} - options("evaluate") == {"--exclude", "--offer-cost"}


def table(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    arm, other = np.resize(["drug", "none"], n), rng.choice(["no", "yes"], n)
    frame = pd.DataFrame({"age": rng.integers(20, 80, n), "site": rng.choice(["a", "b"], n), "arm": arm, "diet": other})
    frame = frame.assign(score=rng.normal(size=n).round(3), state=rng.choice(["ill", "well"], n), w=1.5, block="x")
    frame = frame.assign(days=rng.exponential(50, n).round(2) + 1, ended=rng.choice(["censored", "heart", "other"], n))
    gaps = frame["score"].where(rng.random(n) < 0.9)
    return frame.assign(since=0.5, offer=rng.choice(["asked", "not"], n), gaps=gaps, half=0.5, fee=2.0)


STUDIES = {
    "numbers": {},
    "roles": {"confounders": ["site"], "cluster": "diet", "weights": "w", "strata": ["block"], "randomized": True},
    "chances": {"propensity": {"drug": 0.5, "none": "half"}, "arm_costs": {"drug": "fee", "none": 0.25}},
    "an event": {"outcome": Event("state", "ill")},
    "gaps": {"outcome": MayBeMissing("gaps")},
    "gaps in words": {"outcome": MayBeMissing(Event("state", "well"))},
    "times": {
        "outcome": TimeToEvent("days", "ended", happened="heart", horizon=60.0, measure="survival", entry="since")
    },
    "causes": {"outcome": TimeToEvent("days", "ended", cause="heart", horizon=60.0), "direction": "minimize"},
    "offers": {"treatment": Offered("arm", by="offer")},
    "several": {"treatment": Combined(("arm", "diet"))},
}


@pytest.mark.parametrize("name", STUDIES)
def test_options_say_a_study_and_a_study_its_options(name):
    said = {"treatment": "arm", "outcome": "score", "covariates": ["age"], "direction": "maximize"} | STUDIES[name]
    study = Study(table(), **said)
    again, _ = study_of_table("trial.csv", table(), options_of(study))
    for field in dataclasses.fields(Study):
        if field.name in ("rows", "found", "name", "unit", "outcome", "propensity", "arm_costs", "randomized"):
            continue
        assert getattr(again, field.name) == getattr(study, field.name), field.name
    assert bool(again.randomized) is bool(study.randomized or study.propensity)
    assert again.outcome.columns() == study.outcome.columns() and again.name == "trial.csv"
    for made in ("y", "arm", "weight"):
        np.testing.assert_array_equal(getattr(again.observed, made), getattr(study.observed, made))
    if study.observed.times is not None:
        np.testing.assert_array_equal(again.observed.times.code, study.observed.times.code)
        assert again.observed.times.horizon == study.observed.times.horizon
    given, expected = again.data, study.data
    for role in ("propensity", "sample_treatment_costs"):
        first, second = (pd.DataFrame(getattr(each, role), index=[0]) for each in (given, expected))
        pd.testing.assert_frame_equal(first, second)
    assert options_of(again) == dataclasses.replace(options_of(study), randomized=bool(again.randomized))


@pytest.mark.parametrize("kind", test_study.KINDS)
def test_options_say_every_kind_of_study(kind):
    """Those of which rewards are compared to the last bit; whom a rule is for is a file on the command line."""
    study = test_study.study_of(kind)
    again, _ = study_of_table("trial.csv", study.table, options_of(study))
    assert type(again.outcome) is type(study.outcome) and type(again.treatment) is type(study.treatment)
    assert again.treatment == study.treatment and again.outcome.columns() == study.outcome.columns()
    for made in ("y", "arm", "weight", "clusters"):
        np.testing.assert_array_equal(getattr(again.observed, made), getattr(study.observed, made))
    if study.observed.times is not None:
        assert again.observed.times.horizon == study.observed.times.horizon
        assert again.observed.times.target == study.observed.times.target


@pytest.mark.parametrize("name", STUDIES)
def test_columns_of_a_kind_are_no_covariates(name):
    """A kind that was tried as the recipe says lent its second column to the tree."""
    said = {"treatment": "arm", "outcome": "score", "covariates": ["age"], "direction": "maximize"} | STUDIES[name]
    study = Study(table(), **said)
    again, _ = study_of_table("trial.csv", table(), dataclasses.replace(options_of(study), covariates=None))
    assert "age" in again.covariates
    assert not {*study.outcome.columns().values(), *study.treatment.columns().values()} & {*again.covariates}


def test_what_a_design_says_of_columns_holds_for_evaluate_and_its_help_says_so():
    design = {"treatment": "arm", "outcome": "score", "strata": ["block", "gone"], "cluster": "diet"}
    asked = _with_design(StudyOptions(), design, table())
    assert (asked.strata, asked.cluster) == ("block", "diet")
    assert _with_design(StudyOptions(strata="site"), design, table()).strata == "site"
    params = {each.name: each for each in typer.main.get_command(app).commands["evaluate"].params}
    for field in dataclasses.fields(StudyOptions):
        if field.name in params and field.default is not False:
            assert params[field.name].help.endswith(" Default: as in the design."), field.name
    columns = [each.name for each in dataclasses.fields(StudyOptions) if each.metadata["metavar"] == COLUMNS]
    assert "strata" in columns and params["strata"].help.count("Default") == 1


def test_a_built_in_study_is_the_same_by_options():
    own, _ = study_from_dataset("rand-hie", None, StudyOptions())
    again, _ = study_of_table("rand-hie", own.table, options_of(own))
    assert options_of(own) == options_of(again)
    assert own.X.equals(again.X)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"covariates": ["age", "arm"]}, "--covariates names 'arm', which is the treatment; leave it out."),
        ({"cluster": "score"}, "--cluster names 'score', which is the outcome; leave it out."),
        ({"outcome": TimeToEvent("days", "site")}, "such as --event a (all others are then censored)"),
        ({"outcome": TimeToEvent("days", "state", cause="ill")}, "With --cause, 0 in column 'state' stands"),
        ({"outcome": TimeToEvent("days", "arm")}, "--event-column names 'arm', which is the treatment"),
        ({"outcome": TimeToEvent("days", "ended", happened=1, cause=1)}, "--event and --cause both name a value"),
        ({"arm_costs": {"pill": 1.0}}, "--arm-cost names the treatment 'pill'; the treatments are drug, none."),
        ({"propensity": {"drug": 0.5}}, "--propensity has no probability for treatment none"),
        ({"propensity": 0.3}, "--propensity 0.3 may be the probability of the treatment drug or of none"),
        ({"confounders": ["sight"]}, "There is no column 'sight' (--confounders); did you mean 'site'?"),
        ({"covariates": ["age"], "exclude": ["site"]}, "--covariates names all covariates; leave --exclude out"),
    ],
)
def test_sentences_about_arguments_become_sentences_about_options(said, words):
    with pytest.raises(InputError) as caught:
        Study(table(), **({"treatment": "arm", "outcome": "score", "covariates": ["age"]} | said))
    assert words in in_options(str(caught.value))
    assert in_options(in_options(str(caught.value))) == in_options(str(caught.value)), "as it is the second time"
    assert in_options("Means by treatment hold weights and cause no event.") == (
        "Means by treatment hold weights and cause no event."
    )
