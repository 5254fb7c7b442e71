"""What models cannot say: daily partitions for samples, room for in-place updates of latest rows, an append-only audit log."""

from __future__ import annotations

from django.db import migrations

PARTITIONED = """
CREATE TABLE {table}_partitioned (LIKE {table} INCLUDING DEFAULTS) PARTITION BY RANGE (sampled_at);
DROP TABLE {table};
ALTER TABLE {table}_partitioned RENAME TO {table};
ALTER TABLE {table} ADD PRIMARY KEY ({key}, sampled_at);
CREATE INDEX {table}_sampled_at_brin ON {table} USING brin (sampled_at);
"""

# A latest row is rewritten every few seconds: half-empty pages let PostgreSQL do it in place (HOT updates).
LATEST = "ALTER TABLE {table} SET (fillfactor = 50);"

APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON fleet_auditentry
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
"""
UNDO_APPEND_ONLY = "DROP TRIGGER append_only ON fleet_auditentry; DROP FUNCTION refuse_change();"


class Migration(migrations.Migration):
    dependencies = [("fleet", "0001_initial")]

    operations = [
        migrations.RunSQL(PARTITIONED.format(table="gpu_sample", key="gpu_id"), migrations.RunSQL.noop),
        migrations.RunSQL(PARTITIONED.format(table="host_sample", key="instance_id"), migrations.RunSQL.noop),
        migrations.RunSQL(LATEST.format(table="gpu_latest"), migrations.RunSQL.noop),
        migrations.RunSQL(LATEST.format(table="host_latest"), migrations.RunSQL.noop),
        migrations.RunSQL(APPEND_ONLY, UNDO_APPEND_ONLY),
    ]
