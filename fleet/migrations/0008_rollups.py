"""Rollups of samples: 5 minutes by week, 1 hour by month; the state of a GPU in every sample."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import fleet.telemetry.rollups.models

STATISTICS = ("min", "avg", "max", "p95")
GPU_READINGS = (
    "utilization_percent",
    "memory_utilization_percent",
    "memory_used_bytes",
    "memory_reserved_bytes",
    "sm_activity",
    "sm_occupancy",
    "tensor_activity",
    "dram_activity",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
    "memory_temperature_celsius",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "pcie_rx_bytes_per_second",
    "pcie_tx_bytes_per_second",
    "nvlink_rx_bytes_per_second",
    "nvlink_tx_bytes_per_second",
    "process_count",
    "process_memory_bytes",
)
HOST_READINGS = (
    "cpu_percent",
    "cpu_iowait_percent",
    "load1",
    "memory_used_bytes",
    "pressure_cpu_percent",
    "pressure_memory_percent",
    "pressure_io_percent",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "disk_read_iops",
    "disk_write_iops",
    "disk_read_latency_seconds",
    "disk_write_latency_seconds",
    "disk_busy_percent",
    "network_rx_bytes_per_second",
    "network_tx_bytes_per_second",
    "filesystem_used_bytes",
    "ssh_sessions",
    "jupyter_busy_kernels",
)
STATES = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")
TABLES = (("gpu_rollup_5min", "gpu_id"), ("gpu_rollup_1h", "gpu_id"), ("host_rollup_5min", "instance_id"), ("host_rollup_1h", "instance_id"))

# The key first, so that one GPU's months lie together in the index; rows of a partition are written bucket by bucket, which BRIN summarizes.
PARTITIONED = """
CREATE TABLE {table}_partitioned (LIKE {table} INCLUDING DEFAULTS) PARTITION BY RANGE (bucket_at);
DROP TABLE {table};
ALTER TABLE {table}_partitioned RENAME TO {table};
ALTER TABLE {table} ADD PRIMARY KEY ({key}, bucket_at);
CREATE INDEX {table}_bucket_at_brin ON {table} USING brin (bucket_at) WITH (pages_per_range = 16);
"""

# What charts of a whole fleet ask of months: answered from the index alone, a tenth of the rows' size.
FLEET_INDEX = """
CREATE INDEX gpu_rollup_1h_fleet ON gpu_rollup_1h (bucket_at, gpu_id) INCLUDE (
    samples, utilization_percent_avg, utilization_percent_max, utilization_percent_p95, power_watts_avg
);
"""


def real(**options: Any) -> models.Field:
    return fleet.telemetry.rollups.models.RealField(**options)


def statistics_of(readings: tuple[str, ...]) -> list[tuple[str, models.Field]]:
    return [(f"{reading}_{statistic}", real(null=True)) for reading in readings for statistic in STATISTICS]


def bucket_fields() -> list[tuple[str, models.Field]]:
    return [
        ("bucket_at", models.DateTimeField()),
        ("samples", models.IntegerField()),
        ("coverage", real()),
    ]


def owner(model: str) -> models.Field:
    return models.ForeignKey(
        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name="+", to=f"fleet.{model}"
    )


def gpu_rollup(name: str, table: str) -> migrations.CreateModel:
    fields = [
        *bucket_fields(),
        ("gpu", owner("gpu")),
        *((f"{state}_seconds", real()) for state in STATES),
        ("throttle_reasons", models.BigIntegerField(help_text="Every bit that was set at any time.", null=True)),
        *statistics_of(GPU_READINGS),
        ("pk", models.CompositePrimaryKey("gpu_id", "bucket_at", blank=True, editable=False, primary_key=True, serialize=False)),
    ]
    return migrations.CreateModel(name=name, fields=fields, options={"db_table": table})


def host_rollup(name: str, table: str) -> migrations.CreateModel:
    fields = [
        *bucket_fields(),
        ("instance", owner("instance")),
        *statistics_of(HOST_READINGS),
        ("pk", models.CompositePrimaryKey("instance_id", "bucket_at", blank=True, editable=False, primary_key=True, serialize=False)),
    ]
    return migrations.CreateModel(name=name, fields=fields, options={"db_table": table})


class Migration(migrations.Migration):
    dependencies = [("fleet", "0007_audit_log_not_emptied")]

    operations = [
        migrations.AddField("gpusample", "state", models.PositiveSmallIntegerField(null=True)),
        gpu_rollup("GpuRollupFiveMinutes", "gpu_rollup_5min"),
        gpu_rollup("GpuRollupHour", "gpu_rollup_1h"),
        host_rollup("HostRollupFiveMinutes", "host_rollup_5min"),
        host_rollup("HostRollupHour", "host_rollup_1h"),
        migrations.CreateModel(
            name="RollupProgress",
            fields=[
                ("resolution", models.CharField(max_length=8, primary_key=True, serialize=False)),
                ("rolled_until", models.DateTimeField()),
                ("next_gpu_id", models.BigIntegerField(default=0)),
            ],
            options={"db_table": "rollup_progress"},
        ),
        migrations.CreateModel(
            name="LateBucket",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("bucket_at", models.DateTimeField()),
                ("bucket_seconds", models.PositiveSmallIntegerField()),
                ("instance", owner("instance")),
            ],
            options={
                "db_table": "rollup_late",
                "indexes": [models.Index(fields=["bucket_seconds", "bucket_at"], name="rollup_late_bucket")],
            },
        ),
        *(migrations.RunSQL(PARTITIONED.format(table=table, key=key), migrations.RunSQL.noop) for table, key in TABLES),
        migrations.RunSQL(FLEET_INDEX, migrations.RunSQL.noop),
    ]
