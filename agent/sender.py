"""The thread that talks to the dashboard: heartbeats, batches in order, and what to do with each answer."""

from __future__ import annotations

import json
import logging
import math
import threading
import time

from agent import __version__
from agent.backoff import Backoff, jittered
from agent.clock import steady_seconds
from agent.transport import Answer, TransportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.actions.desk import Desk
    from agent.outbox import Batch, Outbox
    from agent.transport import Dashboard

log = logging.getLogger("rackrent.sender")

HEARTBEAT_SECONDS = 15.0
_SAMPLES_PATH, _HEARTBEAT_PATH, _ACTIONS_PATH = "/ingest/v1/samples", "/ingest/v1/heartbeat", "/ingest/v1/actions"
# A token that was refused may be accepted again (a team re-enrols, a backup is restored): keep everything, ask seldom
_REFUSED_SECONDS = 300.0
_MOST_RETRY_AFTER_SECONDS = 900.0
# Twenty batches a second empty a day's ring in under ten minutes and leave the server room for others
_REPLAY_PAUSE_SECONDS = 0.05

DONE, DROP, SPLIT, RETRY, SLOW = "done", "drop", "split", "retry", "slow"


def verdict(status: int) -> str:
    """What an answer's status means for the batch that was sent."""
    if status == 200:
        return DONE
    if status == 413:
        return SPLIT
    if status in (400, 422):
        return DROP
    if status in (429, 503) or status >= 500:
        return RETRY
    # 401, 403, 404, redirects and whatever a proxy invents: not this batch's fault
    return SLOW


class Sender(threading.Thread):
    """``heartbeat`` makes the body of one, ``obey`` takes the ``config`` object of an answer, ``desk`` what it asks to be done."""

    def __init__(
        self,
        dashboard: Dashboard,
        outbox: Outbox,
        *,
        boot_id: str,
        heartbeat: Callable[[], dict[str, object]],
        obey: Callable[[object], None],
        desk: Desk | None = None,
    ) -> None:
        super().__init__(name="sender", daemon=True)
        self._dashboard = dashboard
        self._outbox = outbox
        self._boot_id = boot_id
        self._heartbeat = heartbeat
        self._obey = obey
        self._desk = desk
        self._wake = threading.Event()
        self._stopping = False
        self._stop_by = math.inf
        self._backoff = Backoff(first_seconds=2, most_seconds=120)
        self._not_before = 0.0
        self._next_heartbeat = 0.0
        self._reports_not_before = 0.0
        self._trouble = ""

    def wake(self) -> None:
        self._wake.set()

    def stop(self, timeout_seconds: float) -> None:
        """Let what is being sent end, try the rest of the queue once, and come back in any case."""
        self._stop_by = time.monotonic() + timeout_seconds
        self._stopping = True
        self._wake.set()
        self.join(timeout_seconds)

    def run(self) -> None:
        try:
            while not self._stopping:
                self._round()
                self._wake.wait(self._idle_seconds(time.monotonic()))
                self._wake.clear()
            if time.monotonic() >= self._not_before:
                self.send_queue()
        finally:
            self._dashboard.close()

    def _round(self) -> None:
        """What is due now."""
        now = time.monotonic()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_SECONDS
            self.send_heartbeat()
        self.send_reports()
        if now >= self._not_before:
            self.send_queue()

    def _idle_seconds(self, now: float) -> float:
        due = self._next_heartbeat
        if self._not_before > now:
            due = min(due, self._not_before)
        return max(0.01, due - now)

    def send_heartbeat(self) -> None:
        body = json.dumps(
            {
                "v": 1,
                "agent_version": __version__,
                "boot_id": self._boot_id,
                "sent_at": time.time(),
                **self._heartbeat(),
            }
        )
        answer = self._post(_HEARTBEAT_PATH, body)
        if answer is None:
            return
        if answer.status != 200:
            self._tell(f"heartbeat refused with {answer.status}: {describe(answer)}")
        elif self._desk is not None:
            config = answer.body.get("config")
            self._desk.take(answer.body.get("actions"), config.get("server_time") if isinstance(config, dict) else None)

    def send_reports(self) -> None:
        """What became of the actions that were asked for; those that are not taken are sent again with the next heartbeat."""
        if time.monotonic() < self._reports_not_before:
            return
        for report in self._desk.reports() if self._desk is not None else []:
            answer = self._post(_ACTIONS_PATH, json.dumps({"v": 1, **report}))
            # 404: not this machine's (any more); 422: never to be taken
            if answer is None or answer.status not in (200, 404, 422):
                self._reports_not_before = time.monotonic() + HEARTBEAT_SECONDS
                return
            if self._desk is not None:
                self._desk.told(report)

    def send_queue(self) -> None:
        """Oldest first until the queue is empty or an answer says wait."""
        while time.monotonic() < self._stop_by and (batch := self._outbox.oldest()) is not None:
            answer = self._post(_SAMPLES_PATH, self._document(batch))
            if answer is None or not self._settled(batch, answer):
                return
            if not self._stopping:
                time.sleep(_REPLAY_PAUSE_SECONDS)

    def _document(self, batch: Batch) -> str:
        """``sent_at`` on the clock that stamped the batch: the dashboard's correction then holds for its samples, also when the
        wall clock was set in between.
        """
        same_boot = batch.boot_id == self._boot_id
        sent_at = batch.made_at + steady_seconds() - batch.steady_at if same_boot else time.time()
        return json.dumps(
            {**batch.document, "boot_id": batch.boot_id, "seq": batch.seq, "sent_at": sent_at}, separators=(",", ":")
        )

    def _post(self, path: str, document: str) -> Answer | None:
        try:
            answer = self._dashboard.post(path, document.encode())
        except TransportError as error:
            self._tell(f"the dashboard cannot be reached: {error}")
            self._hold(self._backoff.next_seconds())
            return None
        if answer.status == 200:
            self._obey(answer.body.get("config"))
        return answer

    def _settled(self, batch: Batch, answer: Answer) -> bool:
        """Carry out the verdict; True when the next batch may be sent at once."""
        action = verdict(answer.status)
        if action == DONE:
            self._outbox.remove(batch.seq)
            self._recovered()
            return True
        self._tell(f"batch {batch.seq} refused with {answer.status}: {describe(answer)}")
        if action == DROP or (action == SPLIT and not self._outbox.split(batch)):
            self._outbox.drop(batch.seq)
            return True
        if action == SPLIT:
            return True
        asked = answer.retry_after_seconds
        if action == SLOW:
            self._hold(jittered(_REFUSED_SECONDS))
        elif asked is not None:
            self._hold(jittered(min(asked, _MOST_RETRY_AFTER_SECONDS)))
        else:
            self._hold(self._backoff.next_seconds())
        return False

    def _hold(self, seconds: float) -> None:
        self._not_before = time.monotonic() + seconds

    def _recovered(self) -> None:
        self._backoff.reset()
        if self._trouble:
            self._trouble = ""
            log.info("the dashboard takes samples again")

    def _tell(self, trouble: str) -> None:
        """Once for each trouble, not once for each try."""
        if trouble != self._trouble:
            self._trouble = trouble
            log.warning(trouble)


def describe(answer: Answer) -> str:
    """The server's own words, short and printable: it may be anybody's proxy that answers."""
    words = " ".join(str(answer.body.get(name, "")) for name in ("error", "detail", "field")).strip()
    return "".join(character for character in words[:300] if character.isprintable()) or "no reason given"
