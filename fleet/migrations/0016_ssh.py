"""A team's SSH key, confirmed host keys, and exporters that are reached through SSH."""

from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0015_packed_overflow'),
    ]

    operations = [
        migrations.AddField(
            model_name='scrapetarget',
            name='ssh',
            field=models.CharField(blank=True, max_length=330),
        ),
        migrations.CreateModel(
            name='SshKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_key', models.TextField()),
                ('private_key', models.BinaryField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='ssh_key', to='fleet.team')),
            ],
        ),
        migrations.CreateModel(
            name='SshHost',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=253)),
                ('port', models.PositiveIntegerField()),
                ('pinned', models.TextField(blank=True)),
                ('pinned_at', models.DateTimeField(null=True)),
                ('offered', models.TextField(blank=True)),
                ('offered_at', models.DateTimeField(null=True)),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ssh_hosts', to='fleet.instance')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('instance', 'host', 'port'), name='ssh_host_once')],
            },
        ),
    ]
