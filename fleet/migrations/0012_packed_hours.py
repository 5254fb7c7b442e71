"""Packed hours of samples, by week."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

TABLES = (("gpu_hour", "gpu_id"), ("host_hour", "instance_id"))

# Days are written one after the other, each GPU by GPU: a page holds few different days.
PARTITIONED = """
CREATE TABLE {table}_partitioned (LIKE {table} INCLUDING DEFAULTS) PARTITION BY RANGE (hour_at);
DROP TABLE {table};
ALTER TABLE {table}_partitioned RENAME TO {table};
ALTER TABLE {table} ADD PRIMARY KEY ({key}, hour_at);
CREATE INDEX {table}_hour_at_brin ON {table} USING brin (hour_at) WITH (pages_per_range = 16);
"""


def owner(to: str) -> models.Field:
    return models.ForeignKey(
        to, db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name="+"
    )


def packed(name: str, table: str, owner_name: str, to: str) -> migrations.CreateModel:
    return migrations.CreateModel(
        name=name,
        fields=[
            ("hour_at", models.DateTimeField()),
            ("samples", models.IntegerField()),
            ("payload", models.BinaryField()),
            (owner_name, owner(to)),
            ("pk", models.CompositePrimaryKey(f"{owner_name}_id", "hour_at", blank=True, editable=False, primary_key=True, serialize=False)),
        ],
        options={"db_table": table},
    )


class Migration(migrations.Migration):
    dependencies = [("fleet", "0011_fleet_rollups")]

    operations = [
        packed("GpuHour", "gpu_hour", "gpu", "fleet.gpu"),
        packed("HostHour", "host_hour", "instance", "fleet.instance"),
        *(migrations.RunSQL(PARTITIONED.format(table=table, key=key), migrations.RunSQL.noop) for table, key in TABLES),
    ]
