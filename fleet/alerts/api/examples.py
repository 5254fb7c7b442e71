"""What the API's answers about alerts look like."""

from __future__ import annotations

from typing import Any

ALERT_EXAMPLE: dict[str, Any] = {
    "id": 4,
    "team": "acme",
    "instance": 17,
    "account": 2,
    "cause": "gpu.lost",
    "title": "train-01 lost a GPU",
    "why": "GPU 3: the driver cannot read it",
    "remedy": "Restart the machine.",
    "severity": "urgent",
    "state": "open",
    "since": "2026-11-30T08:00:00Z",
    "opened_at": "2026-11-30T08:00:20Z",
    "changed_at": "2026-11-30T08:00:20Z",
    "closed_at": None,
    "closed_why": "",
    "acknowledged_at": None,
    "acknowledged_by": None,
    "acknowledged_note": "",
    "snoozed_at": None,
    "snoozed_until": None,
    "snoozes_until_worse": False,
    "escalated_at": None,
    "escalated_to": None,
    "flapping": False,
    "reopened": 0,
    "price_per_hour": "4.096575",
    "spent": "1.024143",
    "currency": "USD",
}
SIGNAL_EXAMPLE: dict[str, Any] = {
    "kind": "gpu_lost",
    "detail": "gpu:41",
    "severity": "urgent",
    "says": "GPU 3: the driver cannot read it",
    "since": "2026-11-30T08:00:00Z",
    "cleared_at": None,
    "values": {"gpu": 3},
}
EVENT_EXAMPLE: dict[str, Any] = {
    "at": "2026-11-30T08:00:20Z",
    "kind": "opened",
    "severity": "urgent",
    "actor": "",
    "quiet": "",
    "values": {},
}
WHOLE_ALERT_EXAMPLE: dict[str, Any] = {**ALERT_EXAMPLE, "signals": [SIGNAL_EXAMPLE], "events": [EVENT_EXAMPLE]}
WINDOW_EXAMPLE: dict[str, Any] = {
    "id": 6,
    "team": "acme",
    "instance": 17,
    "account": None,
    "starts_at": "2026-12-01T02:00:00Z",
    "ends_at": "2026-12-01T04:00:00Z",
    "reason": "driver 580",
    "created_by": "bob",
    "created_at": "2026-11-30T08:00:00Z",
    "cancelled_at": None,
    "in_force": False,
}
RULE_EXAMPLE: dict[str, Any] = {
    "kind": "thermal",
    "cause": "gpu.throttled",
    "name": "Too hot",
    "says": "A GPU is hot, or its clocks are lowered for heat.",
    "enabled": True,
    "severity": "warning",
    "default_severity": "warning",
    "for_seconds": 300,
    "default_for_seconds": 300,
    "thresholds": [
        {
            "name": "celsius",
            "value": 88.0,
            "default": 88.0,
            "low": 60.0,
            "high": 110.0,
            "unit": "celsius",
            "says": "a GPU is at 88 °C or above, or slows down for heat",
        }
    ],
    "changed_at": None,
    "changed_by": None,
}
PREVIEW_EXAMPLE: dict[str, Any] = {
    "kind": "thermal",
    "times": 3,
    "machines": 2,
    "since": "2026-10-31T08:00:00Z",
    "until": "2026-11-30T08:00:00Z",
    "counted": "hours",
    "why": "",
    "says": "It would have fired 3 times on 2 machines in the last 30 days.",
}
CHANNEL_EXAMPLE: dict[str, Any] = {
    "id": 3,
    "team": "acme",
    "owner": None,
    "kind": "email",
    "name": "On call",
    "options": {"to": "oncall@example.org"},
    "has_secret": False,
    "enabled": True,
    "created_at": "2026-11-30T08:00:00Z",
    "last_ok_at": "2026-11-30T08:00:24Z",
    "failures": 0,
    "broken": "",
    "broken_at": None,
    "failure": "",
}
DELIVERY_EXAMPLE: dict[str, Any] = {
    "id": 31,
    "team": "acme",
    "channel": 3,
    "alert": 4,
    "event": 12,
    "state": "sent",
    "created_at": "2026-11-30T08:00:20Z",
    "next_attempt_at": "2026-11-30T08:00:20Z",
    "attempts": 1,
    "uncertain": 0,
    "sent_at": "2026-11-30T08:00:24Z",
    "took_ms": 310,
    "error": "",
    "error_detail": "",
    "failure": "",
}
ANSWER_TIMES_EXAMPLE: dict[str, Any] = {
    "since": "2026-10-31T08:00:00Z",
    "until": "2026-11-30T08:00:00Z",
    "results": [
        {
            "severity": "urgent",
            "acknowledged": {"count": 12, "median_seconds": 420.0, "worst_seconds": 5400.0},
            "resolved": {"count": 14, "median_seconds": 2460.0, "worst_seconds": 18000.0},
            "by_itself": 3,
            "snoozed": 4,
            "came_back_worse": 1,
        }
    ],
}
ROUTE_EXAMPLE: dict[str, Any] = {
    "id": 7,
    "team": "acme",
    "channel": 3,
    "severities": ["urgent", "warning"],
    "causes": ["gpu"],
    "projects": [2],
    "only_escalated": False,
    "only_mine": False,
    "digest": "none",
    "quiet_from": "22:00",
    "quiet_until": "07:00",
    "urgent_breaks_quiet": True,
    "language": "zh-hans",
    "time_zone": "Asia/Shanghai",
}
ESCALATION_EXAMPLE: dict[str, Any] = {"team": "acme", "after_minutes": 15, "person": "bob"}
