"""TRUNCATE fires no row trigger: the audit log needs one for the statement."""

from __future__ import annotations

from django.db import migrations

REFUSE = """
CREATE TRIGGER not_emptied BEFORE TRUNCATE ON fleet_auditentry FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("fleet", "0006_observation_by_time")]

    operations = [migrations.RunSQL(REFUSE, "DROP TRIGGER not_emptied ON fleet_auditentry;")]
