/* Draws a load test: tokens out and the first token's percentile over the load, two charts on one axis. */
import { CONFIG, escapeText, ink, layoutOf } from "./charts.js";

const line = (x, y, axis, template) => ({
  x,
  y,
  yaxis: axis,
  mode: "lines+markers",
  line: { color: ink("--ink"), width: 1.7 },
  marker: { size: 5, color: ink("--ink") },
  hovertemplate: template,
});

const heading = (text, y) => ({
  xref: "paper",
  yref: "paper",
  x: 0,
  y,
  xanchor: "left",
  yanchor: "bottom",
  text: `<b>${escapeText(text)}</b>`,
  showarrow: false,
  font: { size: 12, color: ink("--ink") },
});

const note = (text, place) => ({ text: escapeText(text), showarrow: false, font: { color: ink("--held-ink") }, ...place });

/** The knee stands upright through both charts, the promise lies across the lower one. */
function marksOf({ knee, promise, words }) {
  const held = (dash) => ({ color: ink("--held"), width: dash ? 1.2 : 1.6, dash: dash || "solid" });
  const shapes = [];
  const annotations = [heading(words.tokens, 0.93), heading(words.ttft, 0.43)];
  if (knee !== null) {
    const x = Math.log10(knee);
    shapes.push({ type: "line", x0: knee, x1: knee, yref: "paper", y0: 0, y1: 0.96, line: held() });
    annotations.push(note(`${words.knee} ${knee}`, { x, yref: "paper", y: 0.57, yanchor: "bottom", xanchor: "right", xshift: -4 }));
  }
  if (promise !== null) {
    shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: promise, y1: promise, line: held("dash") });
    annotations.push(note(`${words.promise} ${promise} ms`, { xref: "paper", x: 0, yref: "y2", y: promise, yanchor: "bottom", xanchor: "left" }));
  }
  return { shapes, annotations };
}

function draw(element, figure) {
  const layout = layoutOf(Number(element.dataset.h), {
    margin: { l: 8, r: 12, t: 14, b: 8 },
    xaxis: { type: "log", tickvals: figure.x, tickformat: "~g", hoverformat: "~g", anchor: "y2" },
    yaxis: { domain: [0.57, 0.93], tickformat: ",", nticks: 3 },
    ...marksOf(figure),
  });
  layout.yaxis2 = { ...layout.yaxis, domain: [0, 0.43], ticksuffix: " ms " };
  const traces = [line(figure.x, figure.tokens, "y", "%{y:,}/s<extra></extra>"), line(figure.x, figure.ttft, "y2", "%{y:,} ms<extra></extra>")];
  window.Plotly.react(element, traces, layout, CONFIG);
}

function drawAll() {
  if (!window.Plotly) return;
  for (const element of document.querySelectorAll("[data-load-chart]")) {
    const data = document.getElementById(element.dataset.loadChart);
    if (data) draw(element, JSON.parse(data.textContent));
  }
}

drawAll();
document.addEventListener("themechange", drawAll);
document.addEventListener("jobchange", drawAll);
document.body.addEventListener("htmx:afterSettle", drawAll);
