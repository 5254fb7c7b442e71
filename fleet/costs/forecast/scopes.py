"""What a forecast can be about and have a past of its own: all of a team, or one project, person or account."""

from __future__ import annotations

from collections.abc import Iterator

from fleet.costs.spend.spend import Where

TEAM = "team"
NOBODY = "none"


def scope_of(where: Where | None) -> str:
    """The name of what is asked for; empty for filters that no past is kept of."""
    if where is None or where == Where():
        return TEAM
    if where.instances or where.meters or where.labels:
        return ""
    asked = [("project", where.projects), ("owner", where.owners), ("account", where.accounts)]
    said = [(name, values) for name, values in asked if values]
    if len(said) != 1 or len(said[0][1]) != 1:
        return ""
    return named(said[0][0], said[0][1][0])


def named(kind: str, pk: int | None) -> str:
    return f"{kind}:{NOBODY if pk is None else pk}"


def where_of(scope: str) -> Where | None:
    """The filters of a scope that is kept."""
    kind, _, word = scope.partition(":")
    pk = None if word in {"", NOBODY} else int(word)
    if kind == "project":
        return Where(projects=(pk,))
    if kind == "owner":
        return Where(owners=(pk,))
    if kind == "account" and pk is not None:
        return Where(accounts=(pk,))
    return None


def scopes_of(*, account: int, project: int | None, owner: int | None) -> Iterator[str]:
    """All scopes that a charge belongs to."""
    yield from (TEAM, named("account", account), named("project", project), named("owner", owner))
