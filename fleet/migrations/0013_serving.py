"""Serving endpoints: the newest reading, readings by day, sums of 5 minutes by week and of an hour by month."""

from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

LATENCIES = ("ttft", "tpot", "e2e")
GAUGES = ("requests_running", "requests_waiting", "kv_cache_ratio")
COUNTS = ("requests_finished", "requests_failed", "prompt_tokens", "generation_tokens")
PARTITIONED = """
CREATE TABLE {table}_partitioned (LIKE {table} INCLUDING DEFAULTS) PARTITION BY RANGE ({column});
DROP TABLE {table};
ALTER TABLE {table}_partitioned RENAME TO {table};
ALTER TABLE {table} ADD PRIMARY KEY (endpoint_id, {column});
CREATE INDEX {table}_{column}_brin ON {table} USING brin ({column}) WITH (pages_per_range = 16);
"""
TABLES = (("serving_sample", "sampled_at"), ("serving_rollup_5min", "bucket_at"), ("serving_rollup_1h", "bucket_at"))
LATEST = "ALTER TABLE serving_latest SET (fillfactor = 50);"


def number() -> models.Field:
    return models.FloatField(null=True)


def whole() -> models.Field:
    return models.BigIntegerField(null=True)


def counts() -> list[tuple[str, models.Field]]:
    return [(name, whole()) for name in COUNTS]


def reading() -> list[tuple[str, models.Field]]:
    of_latencies = [
        (f"{latency}_{name}", whole() if name == "count" else number())
        for latency in LATENCIES
        for name in ("seconds_sum", "count", "seconds_p50", "seconds_p95")
    ]
    gauges = [(name, number()) for name in GAUGES]
    return [("interval_seconds", number()), *gauges, *counts(), *of_latencies]


def endpoint() -> models.Field:
    return models.ForeignKey(
        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name="+", to="fleet.servinglatest"
    )


def rollup(name: str, table: str) -> migrations.CreateModel:
    fields = [
        ("bucket_at", models.DateTimeField()),
        ("samples", models.IntegerField()),
        ("interval_seconds", number()),
        *counts(),
        *((f"{latency}_{part}", whole() if part == "count" else number()) for latency in LATENCIES for part in ("seconds_sum", "count")),
        *((f"{latency}_seconds_p95", number()) for latency in LATENCIES),
        *(
            pair
            for gauge in GAUGES
            for pair in ((f"{gauge}_total", number()), (f"{gauge}_readings", models.IntegerField(default=0)))
        ),
        ("pk", models.CompositePrimaryKey("endpoint_id", "bucket_at", blank=True, editable=False, primary_key=True, serialize=False)),
        ("endpoint", endpoint()),
    ]
    return migrations.CreateModel(name=name, fields=fields, options={"db_table": table})


class Migration(migrations.Migration):
    dependencies = [("fleet", "0012_packed_hours")]

    operations = [
        migrations.CreateModel(
            name="ServingLatest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                *reading(),
                ("engine", models.CharField(max_length=40)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("port", models.PositiveIntegerField()),
                ("first_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("sampled_at", models.DateTimeField(null=True)),
                ("received_at", models.DateTimeField(null=True)),
                (
                    "last_request_at",
                    models.DateTimeField(
                        help_text="Last reading with a request that ran, waited or ended; NULL = none was seen.", null=True
                    ),
                ),
                (
                    "instance",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="serving", to="fleet.instance"),
                ),
            ],
            options={
                "db_table": "serving_latest",
                "constraints": [models.UniqueConstraint(fields=("instance", "engine", "model", "port"), name="serving_once")],
            },
        ),
        migrations.CreateModel(
            name="ServingSample",
            fields=[
                *reading(),
                ("sampled_at", models.DateTimeField()),
                ("pk", models.CompositePrimaryKey("endpoint_id", "sampled_at", blank=True, editable=False, primary_key=True, serialize=False)),
                ("endpoint", endpoint()),
            ],
            options={"db_table": "serving_sample"},
        ),
        rollup("ServingRollupFiveMinutes", "serving_rollup_5min"),
        rollup("ServingRollupHour", "serving_rollup_1h"),
        *(migrations.RunSQL(PARTITIONED.format(table=table, column=column), migrations.RunSQL.noop) for table, column in TABLES),
        migrations.RunSQL(LATEST, migrations.RunSQL.noop),
    ]
