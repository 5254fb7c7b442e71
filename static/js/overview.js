/* Overview: the maps are alive, the chart of the day is drawn when it arrives. */
import { ageText, serverNow, touch } from "./ages.js";
import { Live, startPulse } from "./live.js";
import { applyFilter, startMap, writeTile } from "./map.js";
import { STALE_SECONDS, speaks, worst } from "./states.js";

const card = document.querySelector(".card-tip");
const panels = [...document.querySelectorAll("[data-map]")];
const readText = (epoch) => ageText(serverNow() - epoch);
const GATHER_MS = 100;
const EXPIRE_MS = 5000;

panels.forEach((panel) => startMap(panel, card, readText));
document.body.addEventListener("htmx:oobAfterSwap", () => panels.forEach(applyFilter));

function moveTile(tile, gpu, view) {
  tile.dataset.s = gpu.state;
  const total = Number(tile.dataset.total);
  const silent = !speaks(gpu.state);
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
  nameBlock(block, panel);
  const age = panel.querySelector("header > time.age");
  if (age) touch(age, newest.at);
}

/** The block's edge and second line follow its tiles; the server's fuller words stay while its state does. */
function nameBlock(block, panel) {
  const states = [...block.querySelectorAll(".tiles .gpu")].map((tile) => tile.dataset.s);
  const state = worst(states);
  if (!states.length || state === block.dataset.worst) return;
  block.dataset.worst = state;
  const words = block.querySelector(".m2 em");
  words.dataset.s = state;
  words.textContent = panel.querySelector(`.key[data-s="${state}"] span`)?.firstChild.textContent.trim() ?? "";
}

/* Whoever has not reported for too long is unknown, also on a page that nobody reloads. */
function expire(panel) {
  const { view } = panel.querySelector(".map").dataset;
  let changed = false;
  for (const block of panel.querySelectorAll(".machine[data-read]:not([data-worst=stopped], [data-worst=unknown])")) {
    if (!block.dataset.read || serverNow() - Number(block.dataset.read) <= STALE_SECONDS) continue;
    for (const tile of block.querySelectorAll(".tiles .gpu")) moveTile(tile, { state: "unknown" }, view);
    nameBlock(block, panel);
    changed = true;
  }
  if (changed) recount(panel);
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
setInterval(() => !document.hidden && panels.forEach(expire), EXPIRE_MS);
startPulse();
