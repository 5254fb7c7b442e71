"""Pages of the inventory, all of them under /t/<team>/."""

from __future__ import annotations

from django.urls import path

from fleet.inventory.views import (
    acts,
    bulk,
    environment_diff,
    environments,
    images,
    machines,
    offer_lists,
    offers,
    operations,
    providers,
    ssh,
)

team_urlpatterns = [
    path("images/", images.images, name="images"),
    path("images/compare/", environment_diff.environment_diff, name="environment_diff"),
    path("images/<int:pk>/", environments.environment, {"of_image": True}, name="image"),
    path("images/<int:pk>/edit/", environments.environment_edit, {"of_image": True}, name="image_edit"),
    path("images/<int:pk>/export/", environments.environment_export, {"of_image": True}, name="image_export"),
    path("images/<int:pk>/remove/", environments.environment_remove, {"of_image": True}, name="image_remove"),
    path("environments/add/", environments.environment_add, name="environment_add"),
    path("environments/<int:pk>/", environments.environment, {"of_image": False}, name="environment"),
    path("environments/<int:pk>/edit/", environments.environment_edit, {"of_image": False}, name="environment_edit"),
    path(
        "environments/<int:pk>/export/", environments.environment_export, {"of_image": False}, name="environment_export"
    ),
    path(
        "environments/<int:pk>/remove/", environments.environment_remove, {"of_image": False}, name="environment_remove"
    ),
    path("instances/add/", machines.machine_add, name="machine_add"),
    path("instances/act/", bulk.instances_act, name="instances_act"),
    path("instances/acted/<slug:batch>/", bulk.instances_acted, name="instances_acted"),
    path("instances/<int:pk>/act/<slug:kind>/", acts.instance_act, name="instance_act"),
    path("operations/", operations.operations, name="operations"),
    path("operations/<int:pk>/", operations.operation, name="operation"),
    path("operations/<int:pk>/abandon/", operations.operation_abandon, name="operation_abandon"),
    path("instances/<int:pk>/edit/", machines.machine_edit, name="machine_edit"),
    path("instances/<int:pk>/hold/", machines.hold_place, name="hold_place"),
    path("holds/<int:pk>/release/", machines.hold_release, name="hold_release"),
    path("offers/", offers.offers, name="offers"),
    path("offers/compare/", offers.offers_compare, name="offers_compare"),
    path("offers/lists/", offer_lists.offer_lists, name="offer_lists"),
    path("offers/lists/<int:pk>/remove/", offer_lists.offer_list_remove, name="offer_list_remove"),
    path("offers/ratings/", offer_lists.provider_rate, name="provider_rate"),
    path("offers/ratings/<int:pk>/drop/", offer_lists.provider_rating_drop, name="provider_rating_drop"),
    path("settings/ssh/", ssh.ssh_key, name="ssh_key"),
    path("settings/ssh/make/", ssh.ssh_key_make, name="ssh_key_make"),
    path("settings/ssh/paste/", ssh.ssh_key_paste, name="ssh_key_paste"),
    path("settings/providers/", providers.providers, name="providers"),
    path("settings/providers/new/<slug:kind>/", providers.provider_account_new, name="provider_account_new"),
    path("settings/providers/new/<slug:kind>/checks/", providers.provider_draft_checks, name="provider_draft_checks"),
    path("settings/providers/<int:pk>/", providers.provider_account, name="provider_account"),
    path("settings/providers/<int:pk>/verify/", providers.provider_account_verify, name="provider_account_verify"),
    path("settings/providers/<int:pk>/checks/", providers.provider_account_checks, name="provider_account_checks"),
    path(
        "settings/providers/<int:pk>/register/", providers.provider_account_register, name="provider_account_register"
    ),
    path("settings/providers/<int:pk>/pause/", providers.provider_account_pause, name="provider_account_pause"),
    path(
        "settings/providers/<int:pk>/disconnect/",
        providers.provider_account_disconnect,
        name="provider_account_disconnect",
    ),
]
