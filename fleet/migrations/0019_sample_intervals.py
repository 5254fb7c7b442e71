"""What a sample stands for."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0018_alert_channels'),
    ]

    operations = [
        migrations.AddField(
            model_name='gpusample',
            name='interval_seconds',
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='hostsample',
            name='interval_seconds',
            field=models.PositiveSmallIntegerField(null=True),
        ),
    ]
