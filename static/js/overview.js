/* Overview: the maps are alive, the chart of the day is drawn when it arrives. */
import { ageText, serverNow, touch } from "./ages.js";
import { Live, startPulse } from "./live.js";
import { applyFilter, startMap, writeTile } from "./map.js";
import { STATES, newestOfGpus, speaks, staleAfter, worst } from "./states.js";

const card = document.querySelector(".card-tip");
const panels = [...document.querySelectorAll("[data-map]")];
const readText = (epoch) => ageText(serverNow() - epoch);
const GATHER_MS = 100;
const GATHER_MS_PER_TILE = 0.125; // a map of 8,000 tiles is counted once a second
const EXPIRE_MS = 5000;

panels.forEach((panel) => startMap(panel, card, readText));
document.body.addEventListener("htmx:oobAfterSwap", () => panels.forEach(applyFilter));

function moveTile(tile, gpu, view) {
  tile.dataset.s = gpu.state;
  const total = Number(tile.dataset.total);
  const silent = !speaks(gpu.state);
  set(tile, "--u", silent ? null : gpu.utilization_percent);
  const used = gpu.memory_used_bytes;
  set(tile, "--m", silent || !total || typeof used !== "number" ? null : (100 * used) / total);
  writeTile(tile, view);
}

function set(tile, name, value) {
  if (value === null || value === undefined || Number.isNaN(value)) tile.style.removeProperty(name);
  else tile.style.setProperty(name, String(Math.round(value)));
}

function show(panel, message) {
  const block = panel.querySelector(`#m${message.machine}`);
  const tiles = block?.querySelectorAll(".tiles .gpu") ?? [];
  const newest = tiles.length ? newestOfGpus(message.samples) : message.samples?.at(-1);
  if (!block || !newest || newest.at < Number(block.dataset.read || 0)) return;
  const { view } = panel.querySelector(".map").dataset;
  for (const tile of tiles) {
    const gpu = newest.gpus?.[tile.dataset.gpu];
    tile.dataset.read = gpu ? String(newest.at) : (tile.dataset.read ?? block.dataset.read);
    if (gpu) moveTile(tile, gpu, view);
  }
  block.dataset.read = String(newest.at);
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
  const word = panel.querySelector(`.key[data-s="${state}"] span`)?.firstChild.textContent.trim() ?? "";
  const count = states.filter((other) => other === state).length;
  if (state === "working") delete words.dataset.s;
  else words.dataset.s = state;
  if (state === "working") words.textContent = block.dataset.gpus || word;
  else words.textContent = count < states.length ? `${count} ${word.toLowerCase()}` : word;
}

/* A GPU that was not read for too long is unknown, also on a page that nobody reloads and while its machine still reports. */
function expire(panel) {
  const { view } = panel.querySelector(".map").dataset;
  const changed = new Set();
  for (const tile of panel.querySelectorAll(".tiles .gpu[data-gpu]")) {
    const block = tile.closest(".machine");
    const read = Number(tile.dataset.read || block.dataset.read || 0);
    if (!speaks(tile.dataset.s) || !read || serverNow() - read <= staleAfter(block)) continue;
    moveTile(tile, { state: "unknown" }, view);
    changed.add(block);
  }
  changed.forEach((block) => nameBlock(block, panel));
  if (changed.size) recount(panel);
}

/* Many machines report within one second: a map is written once for all of them. */
function gather(panel) {
  let waiting = [];
  const flush = () => {
    const batch = waiting;
    waiting = [];
    batch.forEach((message) => show(panel, message));
    recount(panel);
    if (panel.dataset.only) applyFilter(panel);
  };
  const pause = Math.max(GATHER_MS, panel.querySelectorAll(".tiles .gpu").length * GATHER_MS_PER_TILE);
  return (message) => {
    if (!waiting.length) setTimeout(flush, pause);
    waiting.push(message);
  };
}

/** By state: how many GPUs, and what they cost an hour, a currency at a time. */
function tally(panel) {
  const totals = {};
  for (const block of panel.querySelectorAll(".machine")) {
    const tiles = block.querySelectorAll(".tiles .gpu");
    for (const tile of tiles) {
      const total = (totals[tile.dataset.s] ??= { count: 0, money: {} });
      total.count += 1;
      const { price, sign } = block.dataset;
      if (price !== undefined) total.money[sign] = (total.money[sign] ?? 0) + Number(price) / tiles.length;
    }
  }
  return totals;
}

const money = (amounts) =>
  Object.entries(amounts)
    .sort(([, one], [, other]) => other - one)
    .map(([sign, amount]) => sign + amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 }))
    .join(" + ");

function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

/** Key and bar follow the tiles at once; what the server says of them comes with the next pulse. */
function recount(panel) {
  const totals = tally(panel);
  const signs = new Set([...panel.querySelectorAll("[data-sign]")].map((block) => block.dataset.sign));
  for (const key of panel.querySelectorAll(".key")) {
    const { count, money: amounts } = totals[key.dataset.s] ?? { count: 0, money: {} };
    write(key.querySelector("b"), String(count));
    const disk = key.dataset.s === "stopped" ? ` ${panel.dataset.disk}` : "";
    if (Object.keys(amounts).length) write(key.querySelector("small"), money(amounts) + panel.dataset.perHour + disk);
    else if (!count && signs.size === 1) write(key.querySelector("small"), money({ [[...signs][0]]: 0 }) + panel.dataset.perHour + disk);
  }
  drawBar(panel.querySelector(".mapbar .bar"), totals);
}

function drawBar(bar, totals) {
  const one = new Set(Object.values(totals).flatMap(({ money: amounts }) => Object.keys(amounts))).size === 1;
  const weight = ({ count, money: amounts }) => (one ? (Object.values(amounts)[0] ?? 0) : count);
  const whole = Object.values(totals).reduce((sum, total) => sum + weight(total), 0) || 1;
  const parts = STATES.filter((state) => totals[state] && weight(totals[state])).map((state) => {
    const part = document.createElement("i");
    part.dataset.s = state;
    part.style.setProperty("--w", ((100 * weight(totals[state])) / whole).toFixed(2));
    return part;
  });
  bar?.replaceChildren(...parts);
}

for (const panel of panels) {
  const live = new Live({ team: panel.dataset.map });
  const add = gather(panel);
  live.addEventListener("message", ({ detail }) => add(detail));
  live.addEventListener("resumed", () => window.htmx?.trigger("#pulse", "pulse"));
}
setInterval(() => !document.hidden && panels.forEach(expire), EXPIRE_MS);
startPulse();
