"""Meanings of the names of columns: an id, a time until an event, an event, harm, or a measurement after treatment.

A name is read as words: ``survTime``, ``surv.time`` and ``surv_time`` are ``surv time``. Times and events are
recognised only where *all* words fit, so that years since diagnosis are no follow-up, and a heart failure in
somebody's history is no event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_VISITS = 12  # names that go on with a number beyond that are wavelengths, items or columns
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_ID = re.compile(r"(^|[^a-z])(id|ids|nr|key|code|index|row|rownum|pidnum|patid|subjid|record|ssn|uuid)([^a-z]|$)")
_PERSON = re.compile(
    r"(.* )?(id|ids|pid|pidnum|patid|ptid|subjid|usubjid|famid|hhid|mrn|ssn|uuid)|"
    r"(patient|person|subject|participant|household|family|respondent|individual|member|client)s?( ?(id|nr|no|number))?"
)
_AFTER = re.compile(
    r"follow[-_ ]?up|(^|[^a-z])(fu|post|after|endpoint|end|discharge|death|died|dead|dod|deceased|mortality|surviv\w*|"
    r"cens\w*|relapse|recur|recurrence|recurred|progression|progressed|readmi\w*|toxicity|adverse|ae|sae|dropout|"
    r"ltfu|withdr\w*|adheren\w*|compl(y|ied|ier|iers|iance|iant)|complet\w*|take[-_ ]?up|offtrt|outcome|result|"
    r"response|responder|change|delta|final|length[-_ ]?of[-_ ]?stay|got)([^a-z]|$)|"
    r"(^|[^a-z])(week|wk|month|mo|day|visit|year|yr)[-_ ]?[1-9]\d*([^0-9]|$)|"
    r"^((vital|exit|os|pfs|dfs|rfs|efs)[-_ ]?)?status[-_ ]?\d?$|^(fustat|etype)$|^time[-_ ]?(2|d)$|"
    r"^((icu|hosp|hospital|total)[-_ ]?)?los([-_ ]?days)?$"
)
_DIGITS = "0123456789"
MOST_DIGITS = 15  # of a number at the end of a name: longer ones are keys, and no times or visits

_LENGTHS = {"time", "days", "weeks", "months"}
_UNITS = _LENGTHS | {"years", "duration"}
_ENDPOINTS = {"os", "pfs", "dfs", "rfs", "efs", "ttp", "tte", "ttr", "ttd", "ttf"}
_TIMES = {
    "survtime", "survivaltime", "futime", "fuptime", "followuptime", "stime", "rtime", "dtime", "ttime", "txtime",
    "crtime", "rltime", "rfstime", "ostime", "pfstime", "dfstime", "efstime", "eventtime", "censtime",
}  # fmt: skip
_SPANS = {"surv", "survival", "fu", "fup", "follow", "followup"}
_EVENTS = {
    "event", "events", "death", "dead", "died", "deceased", "cens", "censor", "censored", "censoring", "uncensored",
    "relapse", "relapsed", "recur", "recurrence", "recurred", "progression", "progressed", "fail", "failed", "failure",
}  # fmt: skip
_MARKS = {"status", "stat", "fustat", "vital"}
_ALONE = {"d", "delta"}  # the letter of textbooks
_SMALL = {"to", "until", "till", "of", "in", "at", "d", "t", "up", "is", "was", "has", "any", "first", "all", "ind",
          "indicator", "flag", "yn", "observed"}  # fmt: skip
_HARM = _EVENTS - {"event", "events"} | {
    "die", "mortality", "fatal", "fatality", "lost", "adverse", "ae", "sae", "toxic", "toxicity",
    "complication", "complications", "readmit", "readmitted", "readmission", "rehospitalized", "rehospitalised",
    "hospitalized", "hospitalised", "infection", "infected", "bleed", "bleeding", "stroke", "infarction", "cancer",
    "fracture", "injury", "disease", "sick", "sickness", "ill", "illness", "pain", "depressed", "depression",
    "suicide", "overdose", "arrest", "arrested", "rearrest", "rearrested", "recid", "recidivism", "default",
    "defaulted", "dropout", "churn", "churned", "unemployed", "homeless", "withdrawn", "withdrew", "cost", "risk",
    "expenditure", "expense", "charge", "debt", "harm", "worse", "worsening", "deterioration", "disability", "symptom",
    "seizure", "crash", "los", "fever", "nausea", "anxiety", "stress", "fatigue", "craving", "crime",
}  # fmt: skip
_GOOD = {
    "alive", "survived", "survivor", "survival", "recovered", "recovery", "cured", "cure", "remission", "success",
    "successful", "improved", "improvement", "better", "response", "responded", "responder", "employed", "hired",
    "passed", "graduated", "completed", "retained", "converted", "conversion", "purchase", "purchased", "bought",
    "clicked", "healthy", "benefit", "benefited", "adherent", "vaccinated", "healed", "win", "won", "free", "relief",
    "relieved", "quality", "qol", "wellbeing", "satisfaction", "income", "earnings", "wage", "wages", "salary",
    "revenue", "profit", "sales", "saving", "savings", "saved", "reward", "rewards", "utility", "gain", "gains",
    "control", "controlled", "reduction", "reduced", "screened", "screening",
}  # fmt: skip
_NOT = {"no", "non", "not", "never", "without", "free"}


def stem_and_number(name: str) -> tuple[str, int] | None:
    """A name as what stands before the digits at its end, and these as a number; None where there are none, or many."""
    stem = name.rstrip(_DIGITS)
    digits = name[len(stem) :]
    return (stem, int(digits)) if 0 < len(digits) <= MOST_DIGITS else None


def words(name: object) -> list[str]:
    """The words of a name in small letters; digits at their ends are left off."""
    parts = _NO_LETTERS.sub(" ", _CAMEL.sub(" ", str(name)).lower()).split()
    return [part.rstrip("0123456789") for part in parts if not part.isdigit()]


def is_id(name: object) -> bool:
    """Whether the name is that of a number or key that tells rows or persons apart."""
    return _ID.search(_CAMEL.sub("_", str(name)).lower()) is not None


def is_person(name: object) -> bool:
    """Whether the name is that of an id of persons or households, or of whatever else has an id."""
    return _PERSON.fullmatch(_NO_LETTERS.sub(" ", _CAMEL.sub(" ", str(name)).lower()).strip()) is not None


def is_event(name: object) -> bool:
    """Whether the name is that of an event, or says whether it came: died, cens, status, event_observed."""
    parts = words(name)
    known = _EVENTS | _MARKS | _ALONE | _ENDPOINTS | _SPANS | _SMALL
    if not parts or not known.issuperset(parts) or _UNITS & set(parts):
        return False
    return bool((_EVENTS | _MARKS) & set(parts)) or (len(parts) == 1 and parts[0] in _ALONE)


def is_time(name: object, *, follow_up: bool = False) -> bool:
    """Whether the name may be that of a time until an event: time, days, survtime, os_months, time_to_relapse.

    Parameters
    ----------
    name : object
    follow_up : bool
        Also years and durations, which beside an outcome mean many other things.
    """
    parts = set(words(name))
    units = _UNITS if follow_up else _LENGTHS
    if not parts or not parts <= units | _TIMES | _ENDPOINTS | _SPANS | _EVENTS | _SMALL:
        return False
    return bool(parts & (units | _TIMES)) or (bool(parts & (_ENDPOINTS | _SPANS)) and not parts & _EVENTS)


def is_follow_up(name: object) -> bool:
    """Whether the name is that of a time until an event and of nothing else: survtime, os_months, not days."""
    return is_time(name) and not set(words(name)) <= _LENGTHS | _SMALL


def sounds_bad(name: object) -> bool | None:
    """Whether more of an outcome with this name is harm; None where the name does not tell."""
    parts = set(words(name))
    parts |= {part.removesuffix("s") for part in parts if not part.endswith("ss")}
    bad, good, turned = bool(parts & _HARM), bool(parts & (_GOOD - _NOT)), bool(parts & _NOT)
    if bad == good:
        return None
    if bad and (is_time(name) or "to" in words(name)):  # later is better where the event is harm
        return None
    if bad:
        return not turned
    return None if turned else False


def later_words(name: object, outcome: str | None, *, number: bool) -> str:
    """Why the name suggests a measurement after treatment, as the end of a sentence; "" if it does not.

    Parameters
    ----------
    name : object
    outcome : str or None
        The outcome's name.
    number : bool
        Whether the column holds numbers: texts are no times.
    """
    text = _CAMEL.sub("_", str(name)).lower()
    if hit := _AFTER.search(text):
        return f"contains {hit[0].strip('_- .')!r}"
    if number and is_follow_up(name):
        return "is that of a time until an event"
    own, theirs = stem_and_number(text), stem_and_number((outcome or "").lower())
    if own and theirs and own[1] >= theirs[1] and _without_break(own[0])[:2] == _without_break(theirs[0])[:2] != "":
        return f"counts on from the outcome's, {outcome!r}"
    return ""


def later_than_baseline(names: Iterable[str]) -> dict[str, str]:
    """Columns whose name has a number where that of another column has a zero: cd420 beside cd40.

    Numbers that count up one by one (x10, x11, x12) are names of columns and no times.

    Returns
    -------
    dict of str to str
        Each such column, and the one with the zero.
    """
    stems: dict[str, dict[int, str]] = {}
    for name in names:
        hit = stem_and_number(str(name).lower())
        if hit and _has_word_at_end(hit[0]):
            stems.setdefault(hit[0], {})[hit[1]] = str(name)
    found = {}
    for numbered in stems.values():
        if len(numbered) > MOST_VISITS or any(number + 1 in numbered for number in numbered):
            continue
        for zero, baseline in numbered.items():
            digits = str(zero)
            if len(digits) < 2 or not digits.endswith("0"):
                continue
            for number, later in numbered.items():
                rest = str(number)[len(digits) - 1 :]
                if str(number).startswith(digits[:-1]) and len(rest) >= 2 and rest[0] != "0":
                    found[later] = baseline
    return found


def _without_break(stem: str) -> str:
    """Strip the sign that divides a name from its number."""
    return stem[:-1] if stem.endswith(("-", "_", " ", ".")) else stem


def _has_word_at_end(stem: str) -> bool:
    """Whether a letter stands behind the last digit."""
    for letter in reversed(stem):
        if letter.isdigit() or "a" <= letter <= "z":
            return not letter.isdigit()
    return False
