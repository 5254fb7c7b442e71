/* The planner: shows what is wrong beside its field, keeps the form in step with the answer, sorts tables, draws charts. */
import { CONFIG, escapeText, ink, layoutOf } from "./charts.js";

const form = document.getElementById("plan-form");
// Going back loads the page anew: a copy of it would have lost what stood in the form.
if (window.htmx) Object.assign(window.htmx.config, { historyCacheSize: 0, refreshOnHistoryMiss: true });
const sorted = new Map(); // table -> [column, direction], kept over swaps

const json = (id) => JSON.parse(document.getElementById(id)?.textContent || "{}");

/** Marks the fields that were refused, and takes the marks off the others. */
function showErrors() {
  const errors = json("plan-errors-data");
  for (const input of form.querySelectorAll("[name]")) {
    const place = document.getElementById(`error-${input.name}`);
    if (!place) continue;
    place.textContent = errors[input.name]?.text ?? "";
    input.classList.toggle("err", input.name in errors);
    input.toggleAttribute("aria-invalid", input.name in errors);
  }
  document.getElementById("plan-answer")?.classList.toggle("old", Object.keys(errors).length > 0);
}

/** Fields of the other kind of work are neither shown nor sent. */
function showWork() {
  const work = new FormData(form).get("work");
  for (const part of form.querySelectorAll("[data-work]")) {
    part.hidden = part.dataset.work !== work;
    part.querySelector("fieldset").disabled = part.hidden;
  }
}

/** A GPU that was picked in a table stands in the form too, and the model's form knows the plan. */
function followAnswer() {
  const query = document.getElementById("plan-answer")?.dataset.query;
  if (query === undefined) return;
  const asked = new URLSearchParams(query);
  for (const name of ["gpu", "count"]) {
    const input = form.elements[name];
    if (input !== document.activeElement) input.value = asked.get(name) ?? "";
  }
  for (const input of document.querySelectorAll("[data-plan-query]")) input.value = query;
  for (const chip of document.querySelectorAll(".chips a.chip")) chip.toggleAttribute("aria-current", new URL(chip.href).search === `?${query}`);
}

function sortRows(table, column, direction) {
  const head = table.tHead.rows[0].cells[column];
  const number = head.dataset.by === "n";
  const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === "" || y === "") return (x === "") - (y === ""); // what is not known stays last
    return direction * (number ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true }));
  });
  table.tBodies[0].append(...rows);
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
}

function readySorting() {
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.querySelectorAll("th[data-by]")) {
      if (head.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
    }
    const kept = sorted.get(table.dataset.table);
    if (kept) sortRows(table, ...kept);
  }
}

document.addEventListener("click", (event) => {
  const head = event.target.closest("table.sortable th[data-by]");
  if (!head) return;
  const table = head.closest("table");
  const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  sorted.set(table.dataset.table, [head.cellIndex, direction]);
  sortRows(table, head.cellIndex, direction);
});

/** Files are in the page once: their buttons take the text from beside them. */
function readyCopying() {
  for (const button of document.querySelectorAll("[data-copy-code]")) button.dataset.copy = button.closest(".code").querySelector("code").textContent;
}

const shade = (number, count) => `--ink/${(0.86 - (0.74 * number) / Math.max(1, count - 1)).toFixed(2)}`;

function drawMemory(element, figure) {
  const bars = figure.terms.map(({ name, gib }, number) => ({
    type: "bar",
    orientation: "h",
    x: [gib],
    y: [""],
    name: escapeText(name),
    width: 0.62,
    marker: { color: ink(shade(number, figure.terms.length)), line: { width: 1, color: ink("--panel") } },
    hovertemplate: `${escapeText(name)}: %{x:.2f} GiB<extra></extra>`,
  }));
  const whisker = {
    type: "scatter",
    mode: "markers",
    x: [figure.expected],
    y: [""],
    marker: { size: 1, color: ink("--focus") },
    error_x: { type: "data", symmetric: false, array: [figure.high - figure.expected], arrayminus: [figure.expected - figure.low], color: ink("--focus"), thickness: 2, width: 6 },
    hovertemplate: `${figure.low.toFixed(1)} – ${figure.high.toFixed(1)} GiB<extra></extra>`,
  };
  const top = Math.max(figure.card, figure.high) * 1.04;
  const over = figure.high > figure.card;
  const line = { type: "line", x0: figure.card, x1: figure.card, yref: "paper", y0: 0, y1: 1, line: { color: ink(over ? "--held" : "--ink"), width: 2 } };
  const label = { x: figure.card, y: 1, yref: "paper", yanchor: "bottom", xanchor: "right", text: escapeText(figure.card_words), showarrow: false, font: { size: 11, color: ink(over ? "--held-ink" : "--ink-2") } };
  const layout = layoutOf(Number(element.dataset.h), {
    barmode: "stack",
    hovermode: "closest",
    margin: { l: 0, r: 8, t: 20, b: 4 },
    xaxis: { type: "linear", tickformat: "~g", hoverformat: ".2f", range: [0, top], ticksuffix: " GiB", showgrid: true, nticks: 7 },
    yaxis: { showticklabels: false, showgrid: false },
    shapes: [line],
    annotations: [label],
  });
  window.Plotly.react(element, [...bars, whisker], layout, CONFIG);
}

function drawOwning(element, figure) {
  const names = figure.bands.map(({ name }) => escapeText(name));
  const bars = {
    type: "bar",
    orientation: "h",
    y: names,
    base: figure.bands.map(({ low }) => low),
    x: figure.bands.map(({ low, high }) => Math.max(0.6, high - low)),
    width: 0.5,
    marker: { color: figure.bands.map(({ never }) => ink(never ? "--ink-3/0.6" : "--ink-2")) },
    text: figure.bands.map(({ words }) => escapeText(words)),
    textposition: "outside",
    cliponaxis: false,
    hovertemplate: "%{y}: %{text}<extra></extra>",
  };
  const mark = (x, color, dash) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: ink(color), width: 1.5, dash } });
  const shapes = [mark(figure.utilization, "--focus", "dot"), ...(figure.even === null ? [] : [mark(figure.even, "--ink", "solid")])];
  const label = { x: figure.utilization, y: 1, yref: "paper", yanchor: "bottom", text: escapeText(figure.utilization_words), showarrow: false, font: { size: 11, color: ink("--ink-2") } };
  const layout = layoutOf(Number(element.dataset.h), {
    hovermode: "closest",
    margin: { l: 8, r: 70, t: 18, b: 4 },
    xaxis: { type: "linear", tickformat: "~g", hoverformat: "", ticksuffix: " %", range: [0, figure.farthest], showgrid: true, nticks: 6 },
    yaxis: { autorange: "reversed", showgrid: false, ticksuffix: " ", nticks: 12 },
    shapes,
    annotations: [label],
  });
  window.Plotly.react(element, [bars], layout, CONFIG);
}

const DRAW = { memory: drawMemory, owning: drawOwning };

function drawAll() {
  if (!window.Plotly) return;
  const figures = json("plan-charts");
  for (const element of document.querySelectorAll("[data-plan-chart]")) {
    const figure = figures[element.dataset.planChart];
    if (figure) DRAW[element.dataset.planChart](element, figure);
  }
}

form.addEventListener("change", showWork);
document.addEventListener("themechange", drawAll);
document.body.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.elt?.id === "plan-answer") {
    followAnswer();
    readySorting();
    readyCopying();
    requestAnimationFrame(drawAll);
  }
  showErrors();
});
followAnswer();
showWork();
readySorting();
readyCopying();
drawAll();
