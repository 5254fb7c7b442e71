/* Rent or buy: what a month costs against how many of its hours the GPUs work. */
import { CONFIG, escapeText, ink, layoutOf } from "./charts.js";

const TOP = 1.08;

const bandOf = ({ own_low: low, own_high: high }) => ({
  x: [0, 100, 100, 0],
  y: [high, high, low, low],
  fill: "toself",
  fillcolor: ink("--ink/0.14"),
  line: { width: 0 },
  mode: "lines",
  hoverinfo: "skip",
});

const lineOf = (ends, name, sign, dash) => ({
  x: [0, 100],
  y: ends,
  name: escapeText(name),
  mode: "lines",
  line: { color: ink("--ink"), width: 2, dash },
  hovertemplate: `${escapeText(sign)}%{y:,.0f}`,
});

const markOf = ({ used, used_cost: cost }) => ({ x: [used], y: [cost], mode: "markers", marker: { color: ink("--working"), size: 10 }, hoverinfo: "skip" });

/** The measured use as a line, its weeks as a band around it. */
function shapes({ used, week_low: low, week_high: high }) {
  const edge = { yref: "paper", y0: 0, y1: 1 };
  return [
    { type: "rect", x0: low, x1: high, ...edge, fillcolor: ink("--working/0.14"), line: { width: 0 }, layer: "below" },
    { type: "line", x0: used, x1: used, ...edge, line: { color: ink("--working"), width: 1.5 } },
  ];
}

/** Each line is named on itself; what is measured, on the side where there is room. */
function notes({ used, own, rent, words }) {
  const note = (text, color, place) => ({ text: escapeText(text), font: { color: ink(color) }, showarrow: false, ...place });
  const left = used > 70;
  return [
    note(words.measured, "--working-ink", { x: used, yref: "paper", y: 0.02, xanchor: left ? "right" : "left", yanchor: "bottom", xshift: left ? -6 : 6 }),
    note(words.buy, "--ink", { x: 2, y: own, xanchor: "left", yanchor: "bottom" }),
    note(words.rent, "--ink", { x: 24, y: rent * 0.24, xanchor: "left", yanchor: "top", xshift: 6 }),
  ];
}

function draw(element, figure) {
  const { sign, rent, own, words } = figure;
  const layout = layoutOf(Number(element.dataset.h), {
    margin: { l: 8, r: 26, t: 8, b: 30 },
    hovermode: "closest",
    shapes: shapes(figure),
    annotations: notes(figure),
    xaxis: { type: "linear", ticksuffix: "%", dtick: 20, range: [0, 100], tickformat: "d", hoverformat: "d", title: { text: escapeText(words.axis), font: { size: 11 }, standoff: 6 } },
    yaxis: { tickprefix: sign, tickformat: "~s", range: [0, Math.max(rent, figure.own_high) * TOP] },
  });
  const traces = [bandOf(figure), lineOf([own, own], words.buy, sign, "dash"), lineOf([0, rent], words.rent, sign, "solid"), markOf(figure)];
  window.Plotly.react(element, traces, layout, CONFIG);
}

function drawAll() {
  if (!window.Plotly) return;
  for (const element of document.querySelectorAll("[data-owning-chart]")) {
    const data = document.getElementById(element.dataset.owningChart);
    if (data) draw(element, JSON.parse(data.textContent));
  }
}

drawAll();
document.addEventListener("themechange", drawAll);
