from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FleetConfig(AppConfig):
    name = "fleet"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = _("Fleet")

    def ready(self) -> None:
        from fleet.alerts.channels.register import register as register_channels
        from fleet.alerts.register import register_panels as register_alerts
        from fleet.costs.anomalies.register import register as register_anomalies
        from fleet.costs.attribution.register import register as register_attribution
        from fleet.costs.balances.register import register as register_balances
        from fleet.costs.bills.register import register as register_bills
        from fleet.costs.budgets.register import register as register_budgets
        from fleet.costs.charges.register import register as register_charges
        from fleet.costs.exports.register import register as register_exports
        from fleet.costs.forecast.register import register as register_forecast
        from fleet.costs.rates.register import register as register_rates
        from fleet.costs.rightsizing.register import register as register_right_sizing
        from fleet.costs.spend.register import register as register_spend
        from fleet.idle.leases.register import register as register_leases
        from fleet.idle.planned.register import register as register_planned
        from fleet.idle.policies.register import register as register_idle_policies
        from fleet.idle.schedules.register import register as register_schedules
        from fleet.idle.shutdown.register import register as register_stops
        from fleet.inventory.register import register_panels as register_inventory
        from fleet.pages.register import register_panels as register_pages
        from fleet.quality.acceptance.register import register as register_acceptance
        from fleet.quality.health.register import register as register_health
        from fleet.quality.neighbours.register import register as register_neighbours
        from fleet.teams.register import register_panels as register_teams
        from fleet.telemetry.register import register_panels as register_telemetry

        register_pages()
        register_teams()
        register_inventory()
        register_telemetry()
        register_alerts()
        register_channels()
        register_budgets()
        register_balances()
        register_attribution()
        register_spend()
        register_right_sizing()
        register_forecast()
        register_bills()
        register_rates()
        register_charges()
        register_planned()
        register_schedules()
        register_leases()
        register_anomalies()
        register_exports()
        register_neighbours()
        register_acceptance()
        register_health()
        register_stops()
        register_idle_policies()
