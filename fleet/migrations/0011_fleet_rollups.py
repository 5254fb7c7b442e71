"""Rollups of a whole fleet, by groups of GPUs that are alike, each by month; and which group every GPU's rollup counts to."""

from __future__ import annotations

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

BINS = 101
STATES = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")
PARTITIONED = """
CREATE TABLE {table}_partitioned (LIKE {table} INCLUDING DEFAULTS) PARTITION BY RANGE (bucket_at);
DROP TABLE {table};
ALTER TABLE {table}_partitioned RENAME TO {table};
ALTER TABLE {table} ADD PRIMARY KEY (group_id, bucket_at);
CREATE INDEX {table}_bucket_at_brin ON {table} USING brin (bucket_at) WITH (pages_per_range = 16);
"""
TABLES = {"FleetRollupFiveMinutes": "fleet_rollup_5min", "FleetRollupHour": "fleet_rollup_1h"}


def owner(model: str, **options: Any) -> models.ForeignKey:
    settings = {"on_delete": django.db.models.deletion.CASCADE, "db_index": False, "related_name": "+"} | options
    return models.ForeignKey(to=f"fleet.{model}", **settings)


def group(**options: Any) -> models.ForeignKey:
    return owner("rollupgroup", db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, **options)


def fleet_rollup(name: str, table: str) -> migrations.CreateModel:
    fields = [
        ("bucket_at", models.DateTimeField()),
        *((f"{state}_seconds", models.FloatField()) for state in STATES),
        ("utilization_gpus", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=BINS)),
        ("power_watts", models.FloatField(null=True)),
        ("power_gpus", models.IntegerField()),
        ("pk", models.CompositePrimaryKey("group_id", "bucket_at", blank=True, editable=False, primary_key=True, serialize=False)),
        ("group", group()),
    ]
    return migrations.CreateModel(name=name, fields=fields, options={"db_table": table})


class Migration(migrations.Migration):
    dependencies = [("fleet", "0010_gpu_state_totals")]

    operations = [
        migrations.CreateModel(
            name="FleetRollupProgress",
            fields=[
                ("resolution", models.CharField(max_length=8, primary_key=True, serialize=False)),
                ("rolled_until", models.DateTimeField()),
            ],
            options={"db_table": "fleet_rollup_progress"},
        ),
        migrations.CreateModel(
            name="RollupGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("gpu_model", models.CharField(max_length=120)),
                ("tenancy", models.CharField(max_length=16)),
                ("account", owner("provideraccount")),
                ("project", owner("project", null=True)),
                ("team", owner("team", db_index=True)),
            ],
            options={
                "db_table": "rollup_group",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "account", "project", "gpu_model", "tenancy"), name="rollup_group_once", nulls_distinct=False
                    )
                ],
            },
        ),
        *(fleet_rollup(name, table) for name, table in TABLES.items()),
        *(migrations.RunSQL(PARTITIONED.format(table=table), migrations.RunSQL.noop) for table in TABLES.values()),
        migrations.AddField("gpurollupfiveminutes", "group", group(null=True)),
        migrations.AddField("gpurolluphour", "group", group(null=True)),
    ]
