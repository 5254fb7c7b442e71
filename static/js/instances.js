/* Instances: rows that are on the page follow the samples; what is filtered, sorted or loaded later comes from the server. */
import { serverNow, touch } from "./ages.js";
import { Live } from "./live.js";
import { newestOfGpus, speaks, staleAfter, worst } from "./states.js";

const EXPIRE_MS = 5000;
const words = () => JSON.parse(document.getElementById("list").dataset.words);

function nested(...classes) {
  const elements = classes.map((name) => Object.assign(document.createElement("span"), { className: name }));
  elements.reduce((outer, inner) => (outer.append(inner), inner));
  return elements[0];
}

/** A percentage with its bar, as components/level.html draws it; null = not known. */
function level(cell, percent) {
  if (!cell) return;
  if (percent === null) {
    const unknown = nested("unk", "");
    unknown.firstChild.textContent = words().unknown.toLowerCase();
    cell.replaceChildren(unknown);
    return;
  }
  if (!cell.querySelector(".level")) {
    const drawn = nested("level", "bar");
    drawn.firstChild.append(document.createElement("i"));
    drawn.append(document.createElement("span"));
    cell.replaceChildren(drawn);
  }
  cell.querySelector(".bar > i").style.setProperty("--w", String(percent));
  cell.querySelector(".level > span:last-child").textContent = `${percent}%`;
}

function mean(values) {
  const known = values.filter((value) => typeof value === "number");
  return known.length ? Math.round(known.reduce((sum, value) => sum + value, 0) / known.length) : null;
}

/** The row's state follows its marks; how long it lasts is the server's to say. */
function nameRow(row) {
  const states = [...row.querySelectorAll(".gpus .gpu")].map((mark) => mark.dataset.s);
  const state = worst(states);
  const badge = row.querySelector(".badge");
  if (!badge || !states.length || state === badge.dataset.s) return;
  const word = words()[state];
  const count = states.filter((other) => other === state).length;
  badge.dataset.s = state;
  badge.querySelector(".gpu").dataset.s = state;
  badge.lastChild.textContent = count < states.length && state !== "working" ? `${count}/${states.length} ${word.toLowerCase()}` : word;
  badge.nextElementSibling?.remove();
}

function show(message) {
  const row = document.querySelector(`tr[data-machine="${message.machine}"]`);
  const marks = row?.querySelectorAll(".gpus .gpu") ?? [];
  const newest = marks.length ? newestOfGpus(message.samples) : message.samples?.at(-1);
  if (!row || !newest || newest.at < Number(row.dataset.read || 0)) return;
  for (const mark of marks) {
    const gpu = newest.gpus?.[mark.dataset.gpu];
    mark.dataset.read = gpu ? String(newest.at) : (mark.dataset.read ?? row.dataset.read);
    if (gpu) mark.dataset.s = gpu.state;
  }
  row.dataset.read = String(newest.at);
  nameRow(row);
  if (marks.length) showLevels(row, Object.values(newest.gpus));
  const age = row.querySelector("time.age");
  if (age) touch(age, newest.at);
}

function showLevels(row, gpus) {
  level(row.querySelector('[data-cell="busy"]'), mean(gpus.map((gpu) => gpu.utilization_percent)));
  const fill = ({ memory_used_bytes: used, memory_total_bytes: total }) => (typeof used === "number" && total ? (100 * used) / total : null);
  level(row.querySelector('[data-cell="memory"]'), mean(gpus.map(fill)));
}

/* A GPU that was not read for too long is unknown, also on a page that nobody reloads and while its machine still reports. */
function expire() {
  for (const row of document.querySelectorAll("tr[data-machine]")) {
    const stale = [...row.querySelectorAll(".gpus .gpu[data-gpu]")].filter((mark) => {
      const read = Number(mark.dataset.read || row.dataset.read || 0);
      return speaks(mark.dataset.s) && read && serverNow() - read > staleAfter(row);
    });
    if (!stale.length) continue;
    for (const mark of stale) mark.dataset.s = "unknown";
    nameRow(row);
    if (!row.querySelector('.gpus .gpu:not([data-s="unknown"], [data-s="stopped"])')) showLevels(row, []);
  }
}

if (document.querySelector("[data-live]")) {
  setInterval(() => !document.hidden && expire(), EXPIRE_MS);
  new Live({ team: document.body.dataset.team }).addEventListener("message", ({ detail }) => (detail.type === "operation" ? readList() : show(detail)));
}

/* Steps of operations: the list is read again, once for many. What is marked stays marked, so a list with marks is left alone. */
let reading = 0;
function readList() {
  clearTimeout(reading);
  reading = setTimeout(() => {
    const marked = document.querySelector("td.pickcell input:checked");
    const filters = document.getElementById("filters");
    if (filters && !marked && !document.hidden && !filters.contains(document.activeElement)) window.htmx?.trigger(filters, "change");
  }, 700);
}

/* Marking: all of the page at once, and how many are marked. */
function countMarked() {
  const marked = document.querySelectorAll("td.pickcell input:checked").length;
  const place = document.querySelector("[data-marked]");
  if (place) place.textContent = marked ? String(marked) : "";
  const all = document.querySelector("[data-mark-all]");
  if (all) all.checked = marked > 0 && marked === document.querySelectorAll("td.pickcell input").length;
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-mark-all]")) document.querySelectorAll("td.pickcell input").forEach((box) => (box.checked = target.checked));
  if (target.matches("[data-mark-all], td.pickcell input")) countMarked();
});
