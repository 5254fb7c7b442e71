"""manage.py costs_check: whether the tables that totals of money are read from agree, team by team."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.roll import sum_anew
from fleet.teams.models import Team

MOST_SHOWN = 20


class Command(BaseCommand):
    help = "Compare the sums of money by day, group and month; ends with an error where they do not agree."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("teams", nargs="*", help="Addresses of teams; all of them if none is named.")
        parser.add_argument(
            "--sum-again", action="store_true", help="forget the sums of these teams and let the worker make them again"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        teams = Team.objects.order_by("slug")
        if options["teams"]:
            teams = teams.filter(slug__in=options["teams"])
            if missing := sorted(set(options["teams"]) - {team.slug for team in teams}):
                raise CommandError(f"There is no team {', '.join(missing)}.")
        wrong = sum([self.check_team(team) for team in teams])
        if options["sum_again"]:
            for team in teams:
                sum_anew(team)
            self.stdout.write("The sums are empty, and are made again from the next run on.")
        elif wrong:
            raise CommandError(f"{wrong} sums do not agree. With --sum-again they are made again from the ledger.")

    def check_team(self, team: Team) -> int:
        found = verify_sums(team)
        self.stdout.write(f"{team.slug}: {f'{len(found)} sums do not agree' if found else 'all sums agree'}")
        for one in found[:MOST_SHOWN]:
            self.stdout.write(f"  {one.table} {one.day} group {one.group_id} {one.meter}: {one.what}")
        return len(found)
