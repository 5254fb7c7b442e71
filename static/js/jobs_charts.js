/* The rows of a job's chart: one figure, one axis of time, one hover. The server sends figures in the unit of their axis. */
import { CONFIG, dashOf, escapeText, gapTrace, ink, layoutOf, wallClock } from "./charts.js";

const ASK_MS = 10000;
const ROW_PX = 116;
const HEAD_SHARE = 0.3; // of a row, for its heading
const EDGE_PX = 34;
const SEVERAL_DAYS = 93600;
const panel = document.querySelector("[data-job-charts]");
const place = panel?.querySelector("[data-figure-of-job]");
const page = document.querySelector("[data-job]");
const coarse = matchMedia("(pointer: coarse)").matches; // a finger scrolls the page, it does not zoom
let figure = null;

const axisOf = (number) => (number ? `yaxis${number + 1}` : "yaxis");
const refOf = (number) => (number ? `y${number + 1}` : "y");

function domainOf(number, count) {
  const top = 1 - number / count;
  return [1 - (number + 1) / count, top - HEAD_SHARE / count];
}

function rangeOf(row) {
  const values = row.lines.flatMap(({ y }) => y.filter((value) => value !== null));
  if (row.plan) values.push(row.plan.value);
  const high = Math.max(...values);
  if (row.top) return [0, row.top];
  if (row.zero) return [0, high > 0 ? high * 1.12 : 1];
  const low = Math.min(...values);
  const margin = (high - low || Math.abs(high) || 1) * 0.12;
  return [low - margin, high + margin];
}

function linesOf(row, number) {
  return row.lines.map((line, place) => ({
    x: line.x.map(wallClock),
    y: line.y,
    name: escapeText(row.lines.length > 1 ? `${row.title}, ${line.name}` : row.title),
    mode: line.x.length === 1 ? "markers" : "lines",
    connectgaps: false,
    xaxis: "x",
    yaxis: refOf(number),
    marker: { size: 4, color: ink("--ink") },
    line: { width: line.other ? 1.4 : 1.7, dash: line.other ? "dash" : line.dash || dashOf(place), color: ink(line.other ? "--ink-3" : row.slow && !place ? "--starved" : "--ink") },
    hovertemplate: `%{y:${row.large ? ".3s" : ".4~g"}}${escapeText(row.unit)}`,
  }));
}

function gapsOf(row, number, [low, high]) {
  return row.gaps.length ? [{ ...gapTrace(row.gaps, low, high), xaxis: "x", yaxis: refOf(number) }] : [];
}

function headingOf(row, number, count) {
  const top = domainOf(number, count)[1];
  const at = { xref: "paper", yref: "paper", y: top, yanchor: "bottom", showarrow: false, yshift: 3 };
  const said = row.figure ? ` ${escapeText(row.figure)}` : "";
  const texts = [{ ...at, x: 0, xanchor: "left", text: `<b>${escapeText(row.title)}</b>${said}`, font: { size: 12, color: ink("--ink") } }];
  const changes = !number || figure.rows[number - 1].source !== row.source;
  if (changes && place.clientWidth > 480) texts.push({ ...at, x: 1, xanchor: "right", text: escapeText(row.source), font: { size: 11, color: ink("--ink-2") } });
  return texts;
}

function planOf(row, number) {
  if (!row.plan) return { shapes: [], texts: [] };
  const y = row.plan.value;
  const line = { color: ink("--ink-2"), width: 1.2, dash: "dash" };
  return {
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, yref: refOf(number), y0: y, y1: y, line }],
    texts: [{ xref: "paper", x: 1, xanchor: "right", yref: refOf(number), y, yanchor: "bottom", showarrow: false, text: escapeText(row.plan.text), bgcolor: ink("--panel"), font: { size: 11, color: ink("--ink-2") } }],
  };
}

const marksOf = () =>
  figure.marks.map(({ at }) => ({ type: "line", xref: "x", x0: wallClock(at), x1: wallClock(at), yref: "paper", y0: 0, y1: 1, line: { color: ink("--ink-3"), width: 1, dash: "dot" } }));

function draw() {
  if (!window.Plotly || !figure?.rows.length) return;
  const count = figure.rows.length;
  const ranges = figure.rows.map(rangeOf);
  const plans = figure.rows.map(planOf);
  const axes = Object.fromEntries(
    figure.rows.map((row, number) => [axisOf(number), axisFor(row, domainOf(number, count), ranges[number])]),
  );
  const long = figure.end - figure.start > SEVERAL_DAYS;
  const layout = layoutOf(count * ROW_PX + EDGE_PX, {
    margin: { l: 8, r: 8, t: 4, b: 8 },
    hovermode: "x unified",
    hoversubplots: "axis",
    dragmode: coarse ? false : "zoom",
    uirevision: panel.dataset.span,
    shapes: [...plans.flatMap(({ shapes }) => shapes), ...marksOf()],
    annotations: [...figure.rows.flatMap((row, number) => headingOf(row, number, count)), ...plans.flatMap(({ texts }) => texts)],
    xaxis: {
      range: [wallClock(figure.start), wallClock(figure.end)],
      fixedrange: coarse,
      anchor: refOf(count - 1),
      showspikes: true,
      spikemode: "across",
      spikesnap: "cursor",
      spikethickness: -1, // below zero: without the halo that would make it three lines
      spikedash: "solid",
      spikecolor: ink("--ink-3"),
      ...(long && { tickformat: "%m-%d %H:%M", hoverformat: "%m-%d %H:%M", nticks: 5 }),
    },
  });
  delete layout.yaxis;
  Object.assign(layout, axes);
  const traces = figure.rows.flatMap((row, number) => [...gapsOf(row, number, ranges[number]), ...linesOf(row, number)]);
  window.Plotly.react(place, traces, layout, CONFIG);
}

function axisFor(row, domain, range) {
  const base = layoutOf(0).yaxis;
  return { ...base, domain, range, anchor: "x", nticks: 4, rangemode: "normal", ticksuffix: `${row.unit} `, exponentformat: "e", tickformat: row.large ? "~s" : row.name === "learning_rate" ? "" : "~g" };
}

/* The table behind it, in the words of the server. */
function fillTable({ lines }) {
  const body = panel.querySelector("[data-figures]");
  const heads = panel.querySelector(".behind thead tr");
  heads.replaceChildren(heads.firstElementChild, ...figure.table.heads.map((head) => cell("th", head)));
  body.replaceChildren(
    ...lines.map(([at, ...cells]) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = at;
      row.append(head, ...cells.map((text) => cell("td", text || "—")));
      return row;
    }),
  );
}

function cell(kind, text) {
  const made = document.createElement(kind);
  made.className = "n";
  if (kind === "th") made.scope = "col";
  made.textContent = text;
  return made;
}

function take(answer) {
  figure = answer;
  const none = !figure.rows.length;
  place.hidden = none;
  panel.querySelector("[data-no-rows]").hidden = !none;
  const note = panel.querySelector("[data-note]");
  note.hidden = !figure.note;
  note.textContent = figure.note;
  panel.querySelector('[data-legend="marks"]').hidden = !figure.marks.length;
  panel.querySelector('[data-legend="gaps"]').hidden = !figure.rows.some(({ gaps }) => gaps.length);
  draw();
}

async function ask() {
  const asked = panel.dataset.span;
  const address = new URL(panel.dataset.series, location.href);
  address.searchParams.set("span", asked);
  const response = await fetch(address, { headers: { Accept: "application/json" } });
  if (!response.ok || response.redirected || asked !== panel.dataset.span) return;
  take(await response.json());
  fillTable(figure.table);
}

function choose(link) {
  panel.dataset.span = link.dataset.spanSet;
  for (const other of panel.querySelectorAll("[data-span-set]")) {
    if (other === link) other.setAttribute("aria-current", "true");
    else other.removeAttribute("aria-current");
  }
  history.replaceState(null, "", link.href);
  ask().catch(() => {}); // the network is away: the next round asks again
}

if (panel) {
  take(JSON.parse(document.getElementById("job-figure").textContent));
  panel.addEventListener("click", (event) => {
    const link = event.target.closest("[data-span-set]");
    if (!link) return;
    event.preventDefault();
    choose(link);
  });
  document.addEventListener("themechange", draw);
  setInterval(() => "goesOn" in page.dataset && !document.hidden && ask().catch(() => {}), ASK_MS);
}
