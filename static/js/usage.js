/* The fleet over days: lines, stacked layers and GPUs by state, drawn from the block of figures on the page. */
import { CONFIG, dashOf, escapeText, gapTrace, ink, layoutOf, stateTraces, wallClock } from "./charts.js";

const SHADES = ["--ink/0.8", "--ink/0.64", "--ink/0.5", "--ink/0.37", "--ink/0.26", "--ink/0.16", "--ink/0.08"];
const LINE_INKS = ["--ink", "--ink", "--ink-2", "--ink-2", "--ink-3", "--ink-3", "--ink-3"];
const SEVERAL_DAYS = 93600;
const WEEK = 6 * 86400;

const lengthOf = (figure) => figure.traces[0].y.length;
const startsOf = (figure) => figure.traces[0].y.map((_value, number) => wallClock(figure.start + number * figure.step));

/** [from, to] of every run of buckets that no trace has a figure for; what lies after the newest count is no gap. */
function gapsIn(figure) {
  const gaps = [];
  for (let number = 0; number < lengthOf(figure); number += 1) {
    const from = figure.start + number * figure.step;
    if (figure.until === null || from >= figure.until || figure.traces.some(({ y }) => y[number] !== null)) continue;
    if (gaps.at(-1)?.[1] === from) gaps.at(-1)[1] = from + figure.step;
    else gaps.push([from, from + figure.step]);
  }
  return gaps;
}

function highest(figure) {
  const sums = figure.traces[0].y.map((_value, number) => figure.traces.reduce((sum, { y }) => (figure.kind === "lines" ? Math.max(sum, y[number] ?? 0) : sum + (y[number] ?? 0)), 0));
  return figure.top ?? (Math.max(0, ...sums) * 1.1 || 1);
}

function lines(figure) {
  const x = startsOf(figure);
  return figure.traces.map(({ name, y }, number) => ({
    x,
    y,
    name: escapeText(name),
    mode: "lines",
    connectgaps: false,
    line: { width: 1.7, color: ink(LINE_INKS[number % LINE_INKS.length]), dash: number % 2 ? "dot" : dashOf(0) },
    hovertemplate: `%{y:.3~f}${escapeText(figure.unit)}`,
  }));
}

function areas(figure) {
  const x = startsOf(figure);
  return figure.traces.map(({ name, y }, number) => ({
    x,
    y,
    name: escapeText(name),
    mode: "lines",
    stackgroup: "a",
    line: { width: 1, color: ink("--panel"), shape: "hv" },
    fillcolor: ink(SHADES[number % SHADES.length]),
    hovertemplate: `%{y:.3~f}${escapeText(figure.unit)}`,
  }));
}

const DRAW = { lines, areas, states: stateTraces };

function draw(element, figure) {
  const length = lengthOf(figure) * figure.step;
  const days = length > WEEK ? { tickformat: "%m-%d", hoverformat: "%m-%d %H:%M" } : { tickformat: "%m-%d %H:%M", hoverformat: "%m-%d %H:%M", nticks: 5 };
  const top = highest(figure);
  const layout = layoutOf(Number(element.dataset.h), {
    xaxis: { range: [wallClock(figure.start), wallClock(figure.start + length)], ...(length > SEVERAL_DAYS ? days : {}) },
    yaxis: { range: [0, top], ticksuffix: `${figure.unit} ` },
  });
  window.Plotly.react(element, [gapTrace(gapsIn(figure), 0, top), ...DRAW[figure.kind](figure)], layout, CONFIG);
}

function drawAll() {
  const data = document.getElementById("usage-data");
  if (!window.Plotly || !data) return;
  const figures = JSON.parse(data.textContent);
  for (const element of document.querySelectorAll("[data-usage-chart]")) {
    const figure = figures[element.dataset.usageChart];
    if (figure?.traces.length) draw(element, figure);
  }
}

/** The month below follows the filters above. */
function followFilters() {
  const month = document.getElementById("month");
  const address = document.getElementById("usage")?.dataset.heatAddress;
  if (!month || !address || month.getAttribute("hx-get") === address) return;
  month.setAttribute("hx-get", address);
  window.htmx?.ajax("GET", address, { target: "#month", swap: "innerHTML" });
}

drawAll();
document.addEventListener("themechange", drawAll);
document.body.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.elt?.id !== "usage" && detail.target?.id !== "usage") return;
  drawAll();
  followFilters();
});
