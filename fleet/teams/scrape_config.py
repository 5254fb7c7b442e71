"""What a team's own Prometheus needs to read its page; docs/metrics.md shows the same text, which a test holds equal."""

from __future__ import annotations

from urllib.parse import urlsplit

_CONFIG = """\
scrape_configs:
  - job_name: rackrent-fleet
    metrics_path: {path}
    honor_labels: true
    scheme: {scheme}
    scrape_interval: 15s
    authorization:
      credentials_file: /etc/prometheus/rackrent.token
    static_configs:
      - targets: [{target}]
"""


def scrape_config(*, base_url: str, path: str) -> str:
    """`base_url`: scheme and host under which Prometheus reaches this installation."""
    parts = urlsplit(base_url)
    # YAML would take the brackets of an IPv6 address for a list.
    target = f'"{parts.netloc}"' if "[" in parts.netloc else parts.netloc
    return _CONFIG.format(path=path, scheme=parts.scheme, target=target)
