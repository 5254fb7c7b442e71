/* Instances: rows that are on the page follow the samples; what is filtered, sorted or loaded later comes from the server. */
import { touch } from "./ages.js";
import { Live } from "./live.js";
import { worst } from "./states.js";

function level(cell, percent) {
  const bar = cell?.querySelector(".bar > i");
  if (!bar || percent === null) return;
  bar.style.setProperty("--w", String(percent));
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
  const word = JSON.parse(document.getElementById("list").dataset.words)[state];
  const count = states.filter((other) => other === state).length;
  badge.dataset.s = state;
  badge.querySelector(".gpu").dataset.s = state;
  badge.lastChild.textContent = count < states.length && state !== "working" ? `${count}/${states.length} ${word.toLowerCase()}` : word;
  badge.nextElementSibling?.remove();
}

function show(message) {
  const row = document.querySelector(`tr[data-machine="${message.machine}"]`);
  const newest = message.samples?.at(-1);
  if (!row || !newest) return;
  const gpus = Object.entries(newest.gpus ?? {});
  for (const [id, gpu] of gpus) {
    const mark = row.querySelector(`.gpu[data-gpu="${CSS.escape(id)}"]`);
    if (mark) mark.dataset.s = gpu.state;
  }
  nameRow(row);
  if (gpus.length) level(row.querySelector('[data-cell="busy"]'), mean(gpus.map(([, gpu]) => gpu.utilization_percent)));
  const age = row.querySelector("time.age");
  if (age) touch(age, newest.at);
}

if (document.querySelector("[data-live]")) {
  new Live({ team: document.body.dataset.team }).addEventListener("message", ({ detail }) => show(detail));
}
