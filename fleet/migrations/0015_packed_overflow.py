"""What PostgreSQL moves out of the row of a packed hour."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0014_prometheus_sources")]

    operations = [
        migrations.AddField(model_name=name, name="overflow", field=models.BinaryField(default=bytes))
        for name in ("gpuhour", "hosthour")
    ]
