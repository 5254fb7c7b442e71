/* Draws figures that the server sends as plain numbers; every colour is a token, drawn anew when the theme changes.
   Names in them come from machines: Plotly reads its texts as markup, so they are escaped here. */
const GAP_STEPS = 2.5; // readings farther apart than this many steps have a gap between them
const TRACE_DASHES = ["solid", "dot", "dash", "dashdot"];
const zone = document.body.dataset.zone || "UTC";
const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);

export const escapeText = (text) =>
  String(text).replace(/[&<>"']/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[sign]);

/** "--held" or "--held/0.2" as a colour that Plotly knows. */
export function ink(name) {
  const [token, alpha] = name.split("/");
  probe.style.color = `var(${token})`;
  const rgb = getComputedStyle(probe).color;
  return alpha ? rgb.replace("rgb(", "rgba(").replace(")", `, ${alpha})`) : rgb;
}

const clock = new Intl.DateTimeFormat("en-CA", {
  timeZone: zone,
  hourCycle: "h23",
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
});
const offsets = new Map();

/** Plotly knows no time zones: the reader's wall clock, written as if it were UTC. Seconds since the epoch in. */
export function wallClock(epoch) {
  const quarter = Math.floor(epoch / 900);
  if (!offsets.has(quarter)) {
    const parts = Object.fromEntries(clock.formatToParts(quarter * 900000).map(({ type, value }) => [type, Number(value)]));
    offsets.set(quarter, Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute) - quarter * 900000);
  }
  return new Date(epoch * 1000 + offsets.get(quarter)).toISOString().slice(0, 23);
}

const axis = () => ({
  gridcolor: ink("--line"),
  linecolor: ink("--line-2"),
  zerolinecolor: ink("--line-2"),
  tickcolor: ink("--line-2"),
  tickfont: { size: 11, color: ink("--ink-2") },
  automargin: true,
  fixedrange: true,
});

export function layoutOf(height, changes = {}) {
  const base = axis();
  return {
    height,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    margin: { l: 8, r: 8, t: 8, b: 8 },
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: ink("--ink-2") },
    hovermode: "x unified",
    hoverlabel: { bgcolor: ink("--panel"), bordercolor: ink("--line-2"), font: { size: 12, color: ink("--ink") } },
    ...changes,
    xaxis: { ...base, type: "date", showgrid: false, tickformat: "%H:%M", hoverformat: "%a %H:%M:%S", nticks: 7, ...changes.xaxis },
    yaxis: { ...base, rangemode: "tozero", nticks: 5, ...changes.yaxis },
  };
}

export const CONFIG = { displayModeBar: false, responsive: true };

/** A line without joins across gaps: points in, x and y with a hole wherever readings are missing. */
export function lineOf(points, step) {
  const x = [];
  const y = [];
  points.forEach(([at, value], number) => {
    if (number && at - points[number - 1][0] > step * GAP_STEPS) {
      x.push(wallClock(points[number - 1][0] + step));
      y.push(null);
    }
    x.push(wallClock(at));
    y.push(value);
  });
  return { x, y };
}

/** [from, to] of every stretch of [start, end] in which none of the moments lies. Moments ascend. */
export function gapsOf(moments, step, start, end) {
  const gaps = [];
  let last = start - step;
  for (const at of [...moments, end + step]) {
    if (at - last > step * GAP_STEPS) gaps.push([Math.max(last + step, start), Math.min(at, end)]);
    last = Math.max(last, at);
  }
  return gaps.filter(([from, to]) => to > from);
}

/** One trace that hatches gaps from edge to edge, [from, to] each; where rows have gaps of their own, [from, to, bottom, top]. */
export function gapTrace(gaps, low, high) {
  const x = [];
  const y = [];
  for (const [from, to, bottom = low, top = high] of gaps) {
    const [a, b] = [wallClock(from), wallClock(to)];
    x.push(a, b, b, a, a, null);
    y.push(bottom, bottom, top, top, bottom, null);
  }
  return {
    x,
    y,
    fill: "toself",
    mode: "lines",
    line: { width: 0 },
    fillcolor: ink("--unknown/0"),
    fillpattern: { shape: "/", fgcolor: ink("--unknown"), bgcolor: ink("--panel"), size: 7, solidity: 0.16 },
    hoverinfo: "skip",
  };
}

export const dashOf = (number) => TRACE_DASHES[number % TRACE_DASHES.length];

const PATTERNS = { free: ".", stalled: "x", unknown: "/" };

/** GPUs by state, stacked. */
export function stateTraces(figure) {
  const x = figure.traces[0].y.map((_count, number) => wallClock(figure.start + number * figure.step));
  return figure.traces.map(({ state, name, y }) => ({
    x,
    y,
    name: escapeText(name),
    stackgroup: "a",
    mode: "lines",
    line: { width: 0, shape: "hv", color: ink(`--${state}`) },
    fillcolor: PATTERNS[state] ? ink("--unknown/0") : ink(`--${state}`),
    ...(PATTERNS[state] && {
      fillpattern: { shape: PATTERNS[state], fgcolor: ink(`--${state}`), bgcolor: ink("--panel"), size: 6, solidity: 0.35 },
    }),
    hovertemplate: "%{y:.3~f}",
  }));
}

/** What the server sends as kind "states". */
function drawStates(element, figure) {
  const traces = stateTraces(figure);
  const range = [traces[0].x[0], wallClock(figure.start + figure.traces[0].y.length * figure.step)];
  window.Plotly.react(element, traces, layoutOf(Number(element.dataset.h) || 220, { xaxis: { range } }), CONFIG);
}

function drawAll() {
  if (!window.Plotly) return;
  for (const element of document.querySelectorAll("[data-chart]")) {
    const data = document.getElementById(element.dataset.chart);
    if (data) drawStates(element, JSON.parse(data.textContent));
  }
}

drawAll();
document.addEventListener("themechange", drawAll);
document.body.addEventListener("htmx:afterSettle", drawAll);
