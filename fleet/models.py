"""Only what Django needs to find the models of every slice. Import them from the slice; name them by string in foreign keys."""

from __future__ import annotations

from fleet.alerts.channels.models import *  # noqa: F403
from fleet.alerts.models import *  # noqa: F403
from fleet.costs.anomalies.models import *  # noqa: F403
from fleet.costs.attribution.models import *  # noqa: F403
from fleet.costs.balances.models import *  # noqa: F403
from fleet.costs.bills.models import *  # noqa: F403
from fleet.costs.book.models import *  # noqa: F403
from fleet.costs.budgets.models import *  # noqa: F403
from fleet.costs.charges.models import *  # noqa: F403
from fleet.costs.exports.models import *  # noqa: F403
from fleet.costs.forecast.models import *  # noqa: F403
from fleet.costs.reports.models import *  # noqa: F403
from fleet.costs.rightsizing.models import *  # noqa: F403
from fleet.costs.spend.models import *  # noqa: F403
from fleet.idle.hooks.models import *  # noqa: F403
from fleet.idle.policies.models import *  # noqa: F403
from fleet.idle.schedules.models import *  # noqa: F403
from fleet.idle.shutdown.models import *  # noqa: F403
from fleet.idle.watch.models import *  # noqa: F403
from fleet.inventory.environments.models import *  # noqa: F403
from fleet.inventory.models import *  # noqa: F403
from fleet.inventory.offers.models import *  # noqa: F403
from fleet.inventory.operations.models import *  # noqa: F403
from fleet.inventory.plans.models import *  # noqa: F403
from fleet.inventory.provider_word.models import *  # noqa: F403
from fleet.quality.models import *  # noqa: F403
from fleet.teams.models import *  # noqa: F403
from fleet.telemetry.actions.models import *  # noqa: F403
from fleet.telemetry.models import *  # noqa: F403
from fleet.telemetry.packed.models import *  # noqa: F403
from fleet.telemetry.rollups.fleet_models import *  # noqa: F403
from fleet.telemetry.rollups.models import *  # noqa: F403
from fleet.telemetry.serving.models import *  # noqa: F403
from fleet.telemetry.sources.models import *  # noqa: F403
