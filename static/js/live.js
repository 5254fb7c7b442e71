/* What machines report, as it arrives: over a websocket; where that is blocked, by asking every few seconds.
   A page in a hidden tab lets go of its connection and fetches what it missed when it is looked at again. */
import { serverNow } from "./ages.js";

const SUBSCRIBE_MS = 10000; // a socket that opens and then says nothing leads into a proxy that swallows it
const SOCKET_TRIES = 3; // failed in a row before polling takes over
const POLL_MS = 5000;
const RETRY_SOCKET_MS = 60000; // while polling, look whether sockets work again
const BACK_OFF_MS = [500, 1000, 2000, 5000, 10000, 30000];
const HIDDEN_GRACE_MS = 30000;
const PULSE_MS = 15000;
const SILENCE_MS = 60000; // a socket that says nothing for so long is dead, or its network is
const GAP_SPREAD_MS = 2000; // pages that missed the same do not all read it in the same moment
const POLL_OVERLAP_SECONDS = 2; // what was being committed while the last answer was made
const FINAL_CODES = new Set([4401, 4403]); // signed out; no longer a member

export class Live extends EventTarget {
  /** Events: "message" (detail: a sample or heartbeat), "resumed" (a gap may lie behind us: read again), "mode" (socket | polling | off). */
  constructor({ team, machines = null }) {
    super();
    this.team = team;
    this.machines = machines;
    this.failures = 0;
    this.mode = "off";
    this.since = serverNow();
    this.wasConnected = false;
    document.addEventListener("visibilitychange", () => this.#visibility());
    addEventListener("online", () => this.#connect());
    this.#connect();
  }

  #setMode(mode) {
    if (this.mode === mode) return;
    this.mode = mode;
    document.body.dataset.liveMode = mode;
    this.dispatchEvent(new CustomEvent("mode", { detail: mode }));
  }

  #connect() {
    if (this.socket || this.refused) return;
    clearTimeout(this.retry);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/live/`);
    this.socket = socket;
    this.handshake = setTimeout(() => this.#swallowed(socket), SUBSCRIBE_MS);
    socket.addEventListener("open", () => socket.send(JSON.stringify({ subscribe: this.#wanted() })));
    socket.addEventListener("message", (event) => this.#hear(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => this.#lost(socket, event.code));
  }

  /** Polling takes over at once: to try again would cost the reader as long each time. */
  #swallowed(socket) {
    this.failures = Math.max(this.failures, SOCKET_TRIES - 1);
    this.#lost(socket);
    socket.close();
  }

  #watch() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.failures = 0;
      this.socket?.close();
    }, SILENCE_MS);
  }

  #wanted() {
    return this.machines ? { team: this.team, machines: this.machines } : { team: this.team };
  }

  #hear(message) {
    clearTimeout(this.handshake);
    this.#watch();
    if (message.type === "subscribed") this.#subscribed();
    else if (message.type === "refused") this.refused = true;
    else if (message.type === "gap") this.#missed();
    else this.#deliver(message);
  }

  #subscribed() {
    this.failures = 0;
    clearTimeout(this.poll);
    this.#setMode("socket");
    if (this.wasConnected) this.#resume();
    this.wasConnected = true;
  }

  /** The server could not tell us everything; several such words are answered by one reading. */
  #missed() {
    this.gap ??= setTimeout(() => {
      this.gap = null;
      this.#resume();
    }, Math.random() * GAP_SPREAD_MS);
  }

  #resume() {
    this.dispatchEvent(new CustomEvent("resumed"));
  }

  #deliver(message) {
    if (message.at > this.since) this.since = message.at;
    this.dispatchEvent(new CustomEvent("message", { detail: message }));
  }

  #lost(socket, code) {
    if (socket !== this.socket) return;
    this.socket = null;
    clearTimeout(this.silence);
    clearTimeout(this.handshake);
    if (FINAL_CODES.has(code)) {
      this.refused = true; // the server will not change its mind
      this.#setMode("off");
      return;
    }
    this.failures += 1;
    if (document.hidden && this.paused) return;
    const blocked = this.failures >= SOCKET_TRIES;
    if (blocked && this.mode !== "polling") this.#startPolling();
    else if (!blocked) this.#setMode("off");
    const wait = blocked ? RETRY_SOCKET_MS : BACK_OFF_MS[Math.min(this.failures, BACK_OFF_MS.length) - 1];
    // Browsers of one team must not all come back in the same moment.
    this.retry = setTimeout(() => this.#connect(), wait * (0.75 + Math.random() / 2));
  }

  #startPolling() {
    this.#setMode("polling");
    this.#ask();
  }

  async #ask() {
    if (this.mode !== "polling") return;
    const query = new URLSearchParams({ since: String(this.since - POLL_OVERLAP_SECONDS) });
    if (this.machines) query.set("machines", this.machines.join(","));
    let wait = POLL_MS;
    try {
      const response = await fetch(`/t/${this.team}/live/?${query}`, { headers: { Accept: "application/json" } });
      if (response.status === 403 || response.status === 404 || response.redirected) {
        this.refused = true;
        this.#setMode("off");
        return;
      }
      if (response.ok) {
        const answer = await response.json();
        answer.messages.forEach((message) => this.#deliver(message));
      } else {
        wait = Math.max(wait, backOff(response));
      }
    } catch {
      /* The network is away; the next round tries again. */
    }
    if (!document.hidden) this.poll = setTimeout(() => this.#ask(), wait);
  }

  #visibility() {
    clearTimeout(this.grace);
    if (document.hidden) {
      this.grace = setTimeout(() => this.#pause(), HIDDEN_GRACE_MS);
      return;
    }
    if (this.paused) {
      this.paused = false;
      this.failures = 0;
      if (this.mode === "polling") this.#resume();
      this.#connect();
    }
    if (this.mode === "polling") {
      clearTimeout(this.poll);
      this.#ask();
    }
  }

  #pause() {
    this.paused = true;
    clearTimeout(this.retry);
    clearTimeout(this.poll);
    this.socket?.close();
  }
}

/** Milliseconds: a server that has too much to do says when to ask again; we spread out around that. */
function backOff(response) {
  return 1000 * (Number(response.headers.get("Retry-After")) || 0) * (1 + Math.random());
}

/** Refreshes what samples alone do not move (money, attention, events), while the page is looked at. */
export function startPulse() {
  const pulse = document.getElementById("pulse");
  if (!pulse) return;
  const beat = () => !document.hidden && window.htmx?.trigger(pulse, "pulse");
  setInterval(beat, PULSE_MS);
  document.addEventListener("visibilitychange", beat);
}
