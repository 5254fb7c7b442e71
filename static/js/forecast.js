/* The month summed up: what was spent, where it is heading with its band, and the budget across it. */
import { CONFIG, escapeText, ink, layoutOf } from "./charts.js";

const TOP = 1.12;

const bandOf = ({ x, low, high }) => ({
  x: [...x, ...[...x].reverse()],
  y: [...high, ...[...low].reverse()],
  fill: "toself",
  fillcolor: ink("--ink/0.16"),
  line: { width: 0 },
  mode: "lines",
  hoverinfo: "skip",
});

const lineOf = ({ x, y }, name, sign, dash) => ({
  x,
  y,
  name: escapeText(name),
  mode: "lines",
  line: { color: ink("--ink"), width: 2, dash },
  hovertemplate: `${escapeText(sign)}%{y:,.0f}`,
});

const nowOf = ({ x, y }) => ({ x: x.slice(-1), y: y.slice(-1), mode: "markers", marker: { color: ink("--ink"), size: 8 }, hoverinfo: "skip" });

const budgetLine = (y) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: ink("--held"), width: 1.5 } });

/** The end is named beside the plot, the budget on its line. */
function notes({ ahead, end, limit }) {
  const found = [];
  if (ahead.y.length) found.push({ xref: "paper", x: 1.01, xanchor: "left", y: ahead.y.at(-1), yanchor: "middle", text: `<b>${escapeText(end)}</b>`, font: { color: ink("--ink") }, showarrow: false });
  if (limit) found.push({ xref: "paper", x: 0, xanchor: "left", y: limit.y, yanchor: "bottom", text: escapeText(limit.text), font: { color: ink("--held-ink") }, showarrow: false });
  return found;
}

function draw(element, figure) {
  const { sign, range, spent, ahead, words, limit } = figure;
  const top = Math.max(1, ...spent.y, ...ahead.high, limit?.y ?? 0) * TOP;
  const layout = layoutOf(Number(element.dataset.h), {
    margin: { l: 8, r: 64, t: 8, b: 8 },
    xaxis: { range, tickformat: "%-d", hoverformat: "%a %-d %b %H:%M", nticks: 8 },
    yaxis: { range: [0, top], tickprefix: sign, tickformat: ",~s" },
    shapes: limit ? [budgetLine(limit.y)] : [],
    annotations: notes(figure),
  });
  const traces = [bandOf(ahead), lineOf(spent, words.spent, sign, "solid"), lineOf(ahead, words.forecast, sign, "dash"), nowOf(spent)];
  window.Plotly.react(element, traces, layout, CONFIG);
}

function drawAll() {
  if (!window.Plotly) return;
  for (const element of document.querySelectorAll("[data-forecast-chart]")) {
    const data = document.getElementById(element.dataset.forecastChart);
    if (data) draw(element, JSON.parse(data.textContent));
  }
}

drawAll();
document.addEventListener("themechange", drawAll);
document.body.addEventListener("htmx:afterSettle", drawAll);
