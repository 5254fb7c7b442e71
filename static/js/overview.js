/* Overview: the maps are alive, the chart of the day is drawn when it arrives. */
import { ageText, serverNow, touch } from "./ages.js";
import { Live, startPulse } from "./live.js";
import { applyFilter, startMap, writeTile } from "./map.js";

const card = document.querySelector(".card-tip");
const panels = [...document.querySelectorAll("[data-map]")];
const readText = (epoch) => ageText(serverNow() - epoch);
const GATHER_MS = 100;
const QUIET_STATES = new Set(["unknown", "stopped"]);

panels.forEach((panel) => startMap(panel, card, readText));
document.body.addEventListener("htmx:oobAfterSwap", () => panels.forEach(applyFilter));

function moveTile(tile, gpu, view) {
  tile.dataset.s = gpu.state;
  const total = Number(tile.dataset.total);
  const silent = QUIET_STATES.has(gpu.state);
  set(tile, "--u", silent ? null : gpu.utilization_percent);
  set(tile, "--m", silent || !total ? null : (100 * gpu.memory_used_bytes) / total);
  writeTile(tile, view);
}

function set(tile, name, value) {
  if (value === null || value === undefined || Number.isNaN(value)) tile.style.removeProperty(name);
  else tile.style.setProperty(name, String(Math.round(value)));
}

function show(panel, message) {
  const block = panel.querySelector(`#m${message.machine}`);
  const newest = message.samples?.at(-1);
  if (!block || !newest || newest.at < Number(block.dataset.read || 0)) return;
  block.dataset.read = String(newest.at);
  const view = panel.querySelector(".map").dataset.view;
  for (const [id, gpu] of Object.entries(newest.gpus ?? {})) {
    const tile = block.querySelector(`[data-gpu="${CSS.escape(id)}"]`);
    if (tile) moveTile(tile, gpu, view);
  }
  const age = panel.querySelector("header > time.age");
  if (age) touch(age, newest.at);
}

/* Many machines report within one second: a map is written once for all of them. */
function gather(panel) {
  let waiting = [];
  const flush = () => {
    const batch = waiting;
    waiting = [];
    batch.forEach((message) => show(panel, message));
    recount(panel);
    applyFilter(panel);
  };
  return (message) => {
    if (!waiting.length) setTimeout(flush, GATHER_MS);
    waiting.push(message);
  };
}

function recount(panel) {
  for (const key of panel.querySelectorAll(".key")) {
    const count = panel.querySelectorAll(`.tiles .gpu[data-s="${key.dataset.s}"]`).length;
    const shown = key.querySelector("b");
    if (shown.textContent !== String(count)) shown.textContent = String(count);
  }
}

for (const panel of panels) {
  const live = new Live({ team: panel.dataset.map });
  const add = gather(panel);
  live.addEventListener("message", ({ detail }) => add(detail));
  live.addEventListener("resumed", () => window.htmx?.trigger("#pulse", "pulse"));
}
startPulse();
