/* One machine, live: its charts grow as samples arrive, its tiles and figures move with them. */
import { serverNow, tick, touch } from "./ages.js";
import { CONFIG, dashOf, escapeText, gapTrace, gapsOf, ink, layoutOf, lineOf, wallClock } from "./charts.js";
import { keepAnswers } from "./answering.js";
import { startCountdowns } from "./countdown.js";
import { Live, startPulse } from "./live.js";
import { newestOfGpus, speaks, staleAfter } from "./states.js";

const REDRAW_MS = 1000;
const SPAN_SECONDS = { "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400, "3d": 259200, "7d": 604800, "30d": 2592000 };
const SEVERAL_DAYS = 93600;
/* Lines of one endpoint share a tone and differ in dash; so do the readings of a machine. */
const TONES = ["--ink", "--ink-3", "--ink-2"];
const page = document.getElementById("machine");
const machine = Number(page.dataset.machine);
const selected = new Set();
let span = page.dataset.span;
let charts = new Map();

/** Over several days the time of the day alone says nothing. */
const dates = () => (SPAN_SECONDS[span] > SEVERAL_DAYS ? { tickformat: "%m-%d %H:%M", hoverformat: "%m-%d %H:%M", nticks: 5 } : {});
const short = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const UNITS = {
  rate: [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  bytes: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]],
};

function stepOf(value, measure) {
  const [base, units] = UNITS[measure];
  let step = 0;
  while (step < units.length - 1 && value >= base ** (step + 1)) step += 1;
  return step;
}

/** A stored value as fleet/formats.py writes it: rates and bytes in the unit that suits them. */
function scaled(value, measure) {
  const [base, units] = UNITS[measure];
  const step = stepOf(value, measure);
  return `${step ? short(value / base ** step) : Math.round(value)} ${units[step]}`;
}

/** One chart: its figures as points by line, and how they are drawn. */
class Chart {
  constructor(name, data) {
    this.name = name;
    this.data = data;
    this.line = document.querySelector(`[data-series-chart="${name}"]`);
    this.heat = document.querySelector(`[data-heat="${name}"]`);
    this.points = data.traces.map((trace) =>
      trace.y.map((value, number) => [data.start + number * data.step, value]).filter(([, value]) => value !== null),
    );
    this.open = data.traces.map(() => null);
    this.drawn = false;
  }

  get window() {
    const end = serverNow();
    return [end - SPAN_SECONDS[span], end];
  }

  /** A reading that arrived live. Finer than a bucket, it is kept as it is; else its bucket's mean is added when that ends. */
  add(number, at, value) {
    const last = this.points[number].at(-1);
    if (last && at <= last[0]) return null;
    if (this.data.step <= 10) return this.#append(number, at, value);
    const bucket = Math.floor(at / this.data.step) * this.data.step;
    const open = this.open[number];
    this.open[number] = open?.bucket === bucket ? { bucket, sum: open.sum + value, count: open.count + 1 } : { bucket, sum: value, count: 1 };
    return open && open.bucket !== bucket ? this.#append(number, open.bucket, open.sum / open.count) : null;
  }

  #append(number, at, value) {
    const points = this.points[number];
    const joins = points.length === 0 || at - points.at(-1)[0] <= this.data.step * 2.5;
    points.push([at, value]);
    return { number, at, value, joins };
  }

  get top() {
    const highest = Math.max(0, ...this.points.flat().map(([, value]) => value));
    return this.data.top ?? (highest * 1.15 || 1);
  }

  get moments() {
    return [...new Set(this.points.flat().map(([at]) => at))].sort((a, b) => a - b);
  }

  /** The axis of rates is in the unit that suits the highest of them, also when what arrives outgrows it. */
  #rescale() {
    if (this.data.measure !== "rate") return;
    const [base, units] = UNITS.rate;
    const step = stepOf(Math.max(0, ...this.points.flat().map(([, value]) => value)) / this.data.factor, "rate");
    if (this.data.unit.trim() === units[step]) return;
    const ratio = base ** -step / this.data.factor;
    this.points = this.points.map((points) => points.map(([at, value]) => [at, value * ratio]));
    this.open = this.open.map((open) => open && { ...open, sum: open.sum * ratio });
    this.data.factor = base ** -step;
    this.data.unit = ` ${units[step]}`;
  }

  shown(number) {
    const gpu = this.data.traces[number].gpu;
    return gpu === null || selected.size === 0 || selected.has(String(gpu));
  }

  draw() {
    const [start, end] = this.window;
    this.points = this.points.map((points) => points.filter(([at]) => at >= start - this.data.step));
    this.#rescale();
    const gaps = gapsOf(this.moments, this.data.step, start, end);
    this.#drawLines(gaps, start, end);
    if (this.heat) this.#drawHeat(start, end);
    this.gapCount = gaps.length;
    this.drawn = true;
  }

  #drawLines(gaps, start, end) {
    const many = this.data.traces.length > 2;
    const lines = this.data.traces.map((trace, number) => ({
      ...lineOf(this.points[number], this.data.step),
      name: escapeText(trace.name),
      mode: "lines",
      visible: this.shown(number),
      connectgaps: false,
      line: { width: many ? 1.2 : 1.7, color: ink(TONES[(trace.gpu === null ? trace.index : number % 2) % TONES.length]), dash: trace.gpu === null ? trace.dash : dashOf(number >> 1) },
      hovertemplate: `%{y:.3~f}${escapeText(this.data.unit)}`,
    }));
    const layout = layoutOf(Number(this.line.dataset.h), {
      xaxis: { range: [wallClock(start), wallClock(end)], ...dates() },
      yaxis: { range: [0, this.top], ticksuffix: `${this.data.unit} ` },
    });
    window.Plotly.react(this.line, [gapTrace(gaps, 0, this.top), ...lines], layout, CONFIG);
  }

  #drawHeat(start, end) {
    const rows = this.data.traces.map((trace, number) => ({ trace, number })).filter(({ number }) => this.shown(number));
    const { step } = this.data;
    const first = Math.floor(start / step) * step;
    const columns = Array.from({ length: Math.ceil((end - first) / step) }, (_none, number) => first + number * step);
    const z = rows.map(({ number }) => {
      const byColumn = new Map(this.points[number].map(([at, value]) => [Math.floor(at / step) * step, value]));
      return columns.map((at) => byColumn.get(at) ?? null);
    });
    const heat = {
      type: "heatmap",
      x: columns.map((at) => wallClock(at + step / 2)),
      y: rows.map((_row, number) => number),
      z,
      zmin: 0,
      zmax: 100,
      colorscale: [
        [0, ink("--well")],
        [1, ink("--working")],
      ],
      showscale: false,
      ygap: 2,
      hoverongaps: false,
      customdata: z.map((row, number) => row.map(() => escapeText(rows[number].trace.name))),
      hovertemplate: `%{customdata}, %{x|${dates().tickformat ?? "%H:%M"}}: %{z:.0f}%<extra></extra>`,
    };
    const gaps = rows.flatMap(({ number }, row) =>
      gapsOf(this.points[number].map(([at]) => at), step, start, end).map(([from, to]) => [from, to, row - 0.5, row + 0.5]),
    );
    const layout = layoutOf(Math.max(60, 24 * rows.length + 34), {
      hovermode: "closest",
      xaxis: { range: [wallClock(start), wallClock(end)], ...dates() },
      yaxis: {
        showgrid: false,
        zeroline: false,
        rangemode: "normal",
        range: [rows.length - 0.45, -0.55],
        tickvals: rows.map((_row, number) => number),
        ticktext: rows.map(({ trace }) => `${escapeText(trace.name)} `),
      },
    });
    window.Plotly.react(this.heat, [heat, gapTrace(gaps)], layout, CONFIG);
  }

  /** The newest reading in words: the mean of the GPUs, or each of the machine's readings with its name. */
  showFigure() {
    const place = this.line.closest("[data-chart-panel]")?.querySelector("[data-figure]");
    const newest = this.points.map((points) => points.at(-1)?.[1]);
    const known = newest.map((value, number) => ({ value, name: this.data.traces[number].name })).filter(({ value }) => value !== undefined);
    if (!place || !known.length || (this.data.traces[0].gpu === null && this.data.traces.length > 2)) return;
    const { measure, factor, unit } = this.data;
    const text = (value) => (measure ? scaled(value / factor, measure) : `${short(value)}${unit}`);
    if (this.data.traces[0].gpu !== null) place.textContent = text(known.reduce((sum, { value }) => sum + value, 0) / known.length);
    else if (newest.length === 1) place.textContent = text(known[0].value);
    else place.textContent = known.map(({ value, name }) => `${text(value)} ${name}`).join(", ");
  }

  /** Adds what arrived since the last redraw; draws anew where a gap opens or closes, or a line outgrows its axis. */
  extend(added) {
    this.showFigure();
    const [start, end] = this.window;
    const outgrown = added.some(({ value }) => value > this.line.layout?.yaxis?.range?.[1]);
    const gaps = gapsOf(this.moments, this.data.step, start, end).length;
    if (!this.drawn || this.heat || outgrown || gaps !== this.gapCount || added.some(({ joins }) => !joins)) {
      this.draw();
      return;
    }
    const numbers = [...new Set(added.map(({ number }) => number))];
    const of = (number) => added.filter((point) => point.number === number);
    this.line.layout.xaxis.range = [wallClock(start), wallClock(end)];
    window.Plotly.extendTraces(
      this.line,
      {
        x: numbers.map((number) => of(number).map(({ at }) => wallClock(at))),
        y: numbers.map((number) => of(number).map(({ value }) => value)),
      },
      numbers.map((number) => number + 1), // trace 0 hatches the gaps
    );
  }
}

function load(data) {
  charts = new Map(Object.entries(data).filter(([name]) => document.querySelector(`[data-series-chart="${name}"]`)).map(([name, figure]) => [name, new Chart(name, figure)]));
  drawAll();
}

function drawAll() {
  if (window.Plotly) charts.forEach((chart) => chart.draw());
}

/* Readings of serving endpoints do not come live: their charts are read again while the page is open. */
async function refetchServing() {
  const names = [...charts.keys()].filter((name) => name.startsWith("serving_"));
  if (document.hidden || !names.length) return;
  const asked = span;
  const response = await fetch(`${page.dataset.series}?span=${asked}`, { headers: { Accept: "application/json" } });
  if (!response.ok) return;
  const { charts: figures } = await response.json();
  if (asked !== span) return;
  names.filter((name) => figures[name]).forEach((name) => {
    const chart = new Chart(name, figures[name]);
    charts.set(name, chart);
    if (window.Plotly) chart.draw();
    chart.showFigure();
  });
}

async function refetch(newSpan = span) {
  const response = await fetch(`${page.dataset.series}?span=${newSpan}`, { headers: { Accept: "application/json" } });
  if (!response.ok) return;
  span = newSpan;
  const { note, charts: figures } = await response.json();
  const place = page.querySelector("[data-span-note]");
  if (place) place.textContent = note;
  page.querySelectorAll("a[data-file]").forEach((link) => {
    const address = new URL(link.href);
    address.searchParams.set("span", span);
    link.href = address.href;
  });
  load(figures);
}

/* Samples wait here and are drawn together, at most once a second. */
const arrived = new Map();
let lastDraw = 0;
let scheduled = 0;

function schedule() {
  if (scheduled) return;
  scheduled = setTimeout(redraw, Math.max(0, lastDraw + REDRAW_MS - performance.now()));
}

function redraw() {
  scheduled = 0;
  lastDraw = performance.now();
  if (!window.Plotly || document.hidden) return;
  arrived.forEach((added, chart) => chart.extend(added));
  arrived.clear();
}

function store(sample) {
  for (const chart of charts.values()) {
    chart.data.traces.forEach((trace, number) => {
      const reading = trace.gpu === null ? sample.host?.[trace.field] : sample.gpus?.[trace.gpu]?.[trace.field];
      if (typeof reading !== "number") return;
      const added = chart.add(number, sample.at, reading * chart.data.factor);
      if (added) arrived.set(chart, [...(arrived.get(chart) ?? []), added]);
    });
  }
}

function showTiles(sample) {
  for (const [id, gpu] of Object.entries(sample.gpus ?? {})) {
    const tile = page.querySelector(`.biggpus [data-gpu="${CSS.escape(id)}"]`);
    if (!tile) continue;
    tile.dataset.read = String(sample.at);
    showTile(tile, gpu);
  }
}

function showTile(tile, gpu) {
  tile.dataset.s = gpu.state;
  const known = speaks(gpu.state) && typeof gpu.utilization_percent === "number";
  tile.querySelector("b").textContent = known ? `${Math.round(gpu.utilization_percent)}%` : "?";
  const line = tile.querySelector(".line");
  if (!speaks(gpu.state)) line.textContent = "";
  else if (typeof gpu.memory_used_bytes === "number") {
    const heat = typeof gpu.temperature_celsius === "number" ? ` · ${Math.round(gpu.temperature_celsius)} °C` : "";
    line.textContent = `${short(gpu.memory_used_bytes / 2 ** 30)} GiB${heat}`;
  }
}

/* A GPU that is read no more is unknown, also on a page that nobody reloads and while its machine still reports. */
function expire() {
  for (const tile of page.querySelectorAll(".biggpus [data-read]:not([data-s=stopped])")) {
    if (serverNow() - Number(tile.dataset.read) > staleAfter(tile)) showTile(tile, { state: "unknown" });
  }
}

function renewAges(source, sample) {
  if (sample) page.querySelectorAll(`[data-source="${source}"] time.age`).forEach((age) => touch(age, sample.at));
}

/* Steps of an operation come live; where they do not, an open one is asked about more often than the rest of the page. */
function readOperation() {
  if (!document.hidden) window.htmx?.trigger(document.getElementById("pulse"), "pulse");
}

function hear(message) {
  if (message.machine !== machine) return;
  if (message.type === "operation") readOperation();
  if (!message.samples?.length) return;
  message.samples.forEach(store);
  const ofGpus = newestOfGpus(message.samples);
  if (ofGpus) showTiles(ofGpus);
  renewAges("gpu", ofGpus);
  renewAges("host", message.samples.findLast(({ host }) => host));
  schedule();
}

page.addEventListener("click", (event) => {
  const tile = event.target.closest(".biggpus [data-gpu]");
  if (tile?.dataset.gpu) {
    const on = !selected.delete(tile.dataset.gpu);
    if (on) selected.add(tile.dataset.gpu);
    tile.setAttribute("aria-pressed", String(on));
    drawAll();
  }
  const range = event.target.closest("[data-span-set]");
  if (range) {
    event.preventDefault();
    for (const other of page.querySelectorAll("[data-span-set]")) {
      if (other === range) other.setAttribute("aria-current", "true");
      else other.removeAttribute("aria-current");
    }
    history.replaceState(null, "", range.href);
    refetch(range.dataset.spanSet);
  }
});

load(JSON.parse(document.getElementById("chart-data")?.textContent ?? "{}"));
document.addEventListener("themechange", drawAll);
document.addEventListener("visibilitychange", () => !document.hidden && drawAll());
/* The window moves on even while nothing arrives, so that silence becomes a gap in front of the reader's eyes. */
setInterval(() => !document.hidden && drawAll(), 30000);
setInterval(() => !document.hidden && expire(), 5000);
setInterval(refetchServing, 20000);
setInterval(() => document.querySelector("[data-open-operation]") && readOperation(), 5000);
const live = new Live({ team: document.body.dataset.team, machines: [machine] });
live.addEventListener("message", ({ detail }) => hear(detail));
live.addEventListener("resumed", () => refetch());
keepAnswers();
startPulse();
startCountdowns();
tick();
