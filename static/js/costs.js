/* Money by day: stacked layers in shades of ink, or in the colours of GPU states. */
import { CONFIG, escapeText, ink, layoutOf } from "./charts.js";

const SHADES = [0.64, 0.52, 0.4, 0.28, 0.16, 0.08, 0.08];
const PATTERNS = { free: ".", stalled: "x", unknown: "/" };
const SIGNS = { USD: "$", EUR: "€", GBP: "£", CNY: "¥" };
const DAY = 86400000;

const signOf = (currency) => SIGNS[currency] ?? `${currency} `;
const dayAfter = (day) => new Date(Date.parse(`${day}T00:00:00Z`) + DAY).toISOString().slice(0, 10);

function fillOf(state, number) {
  if (!state) return { fillcolor: ink(`--ink/${SHADES[Math.min(number, SHADES.length - 1)]}`) };
  if (!PATTERNS[state]) return { fillcolor: ink(`--${state}`) };
  return { fillcolor: ink("--unknown/0"), fillpattern: { shape: PATTERNS[state], fgcolor: ink(`--${state}`), bgcolor: ink("--panel"), size: 6, solidity: 0.35 } };
}

/** A day is as wide as a day: the last one gets an end of its own. */
function layers({ days, currency, traces }) {
  const x = [...days, dayAfter(days.at(-1))];
  return traces.map(({ name, state, y }, number) => ({
    x,
    y: [...y, y.at(-1)],
    name: escapeText(name),
    mode: "lines",
    stackgroup: "a",
    line: { width: 0.8, shape: "hv", color: ink("--panel") },
    hovertemplate: `${escapeText(signOf(currency))}%{y:,.2f}`,
    ...fillOf(state, number),
  }));
}

function draw(element, figure) {
  const { days, currency } = figure;
  const layout = layoutOf(Number(element.dataset.h), {
    xaxis: { range: [days[0], dayAfter(days.at(-1))], tickformat: "%-d", hoverformat: "%a %-d %b", nticks: 8 },
    yaxis: { tickprefix: signOf(currency), tickformat: ",~d" },
  });
  window.Plotly.react(element, layers(figure), layout, CONFIG);
}

function drawAll() {
  if (!window.Plotly) return;
  for (const element of document.querySelectorAll("[data-money-chart]")) {
    const data = document.getElementById(element.dataset.moneyChart);
    if (data) draw(element, JSON.parse(data.textContent));
  }
}

drawAll();
document.addEventListener("themechange", drawAll);
document.body.addEventListener("htmx:afterSettle", drawAll);
