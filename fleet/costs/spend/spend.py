"""`spend`: the one function that every total of money is read from, whether a page, the API, an export, a budget or a mail shows it.

Amounts are exact; what is shown is rounded once (`fleet.formats`). A currency without a rate stays by itself: it is never left out
and never added to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from fleet.costs.spend.converting import rates_into
from fleet.costs.spend.figures import By, Spend, Sum, UsedRate, Where
from fleet.costs.spend.reading import Question, read
from fleet.costs.spend.tally import Tally
from fleet.teams.models import Team

__all__ = ["By", "Spend", "Sum", "UsedRate", "Where", "spend"]


def spend(
    *,
    team: Team,
    start: date,
    end: date,
    by: Sequence[By] = (),
    where: Where | None = None,
    currency: str = "",
    label: str = "",
) -> Spend:
    """What was spent on the days [start, end) of the team's time zone. In the team's currency if none is named.

    Two queries, whatever the size. Machines over long spans are read by whole months where `start` and `end` name them: ask for all of a
    month, also while it has not ended. ValueError: BY LABEL without `label`.
    """
    if By.LABEL in by and not label:
        raise ValueError("say which label to tell money apart by")
    into = currency or team.currency
    rates = rates_into(team_id=team.pk, currency=into, start=start, end=end)
    question = Question(team.pk, start, end, tuple(by), where or Where(), label)
    tally = Tally(into, tuple(by))
    for line in read(question, rates):
        tally.add(line)
    return tally.spend(rates)
