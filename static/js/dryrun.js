/* Dry runs: windows against false stops, and when machines would have been off. */
import { CONFIG, escapeText, ink, layoutOf, wallClock } from "./charts.js";

const PLACES = ["top center", "middle right"];
const HOUR = 3600000;
let shownAs = "money";

const unitOf = ({ sign, words }) => (shownAs === "money" ? [escapeText(sign), "", ` ${escapeText(words.money)}`] : ["", "", ` ${escapeText(words.gpu_hours)}`]);

/** Windows without false stops lie above each other at the left: their names stand beside them. */
const placeOf = (wrong, chosen) => (chosen ? "bottom right" : PLACES[wrong ? 0 : 1]);

function windowsTrace(figure) {
  const { windows, wrong, chosen, words } = figure;
  const [before, , after] = unitOf(figure);
  const here = (yes, no) => windows.map((_, number) => (number === chosen ? yes : no));
  const names = windows.map(escapeText);
  return {
    x: wrong,
    y: figure[shownAs],
    mode: "lines+markers+text",
    line: { color: ink("--ink-3"), width: 1.7 },
    text: names.map((name, number) => (number === chosen ? `<b>${name}</b>` : name)),
    customdata: names,
    textposition: wrong.map((count, number) => placeOf(count, number === chosen)),
    textfont: { size: 11, color: ink("--ink") },
    cliponaxis: false,
    marker: { size: here(12, 7), color: here(ink("--ink"), ink("--panel")), line: { color: ink("--ink"), width: 1.6 } },
    hovertemplate: `${escapeText(words.window)} %{customdata}: ${before}%{y:,.0f}${after}, %{x} ${escapeText(words.axis)}<extra></extra>`,
  };
}

function drawWindows(element, figure) {
  const [before] = unitOf(figure);
  const most = Math.max(...figure.wrong, 1);
  const highest = Math.max(...figure[shownAs], 1);
  const lowest = Math.min(...figure[shownAs], 0);
  const layout = layoutOf(Number(element.dataset.h), {
    hovermode: "closest",
    margin: { l: 12, r: 24, t: 8, b: 34 },
    xaxis: { type: "linear", range: [-0.06 * most, 1.16 * most], tick0: 0, dtick: Math.ceil(most / 5), tickformat: ",d", hoverformat: "d", title: { text: escapeText(figure.words.axis), font: { size: 11 }, standoff: 6 } },
    yaxis: { range: [1.16 * lowest, 1.16 * highest], tickprefix: before, tickformat: ",~d" },
  });
  window.Plotly.react(element, [windowsTrace(figure)], layout, CONFIG);
}

/** Two machines may have one name: rows are told apart by blanks, which nobody sees. */
function drawLanes(element, figure) {
  const { since, until, lanes, off, hit, words } = figure;
  const rows = lanes.map((name, number) => escapeText(name) + " ".repeat(1 + lanes.slice(0, number).filter((other) => other === name).length));
  const range = [wallClock(since), wallClock(until)];
  const bars = {
    type: "bar",
    orientation: "h",
    y: off.map(([number]) => rows[number]),
    base: off.map(([, from]) => wallClock(from)),
    x: off.map(([, from, to]) => Date.parse(`${wallClock(to)}Z`) - Date.parse(`${wallClock(from)}Z`)),
    customdata: off.map(([, , to]) => wallClock(to).slice(0, 16).replace("T", " ")),
    width: 0.5,
    marker: { color: ink("--held") },
    hovertemplate: `%{y}: ${escapeText(words.off)} %{base|%-d %b %H:%M} – %{customdata}<extra></extra>`,
  };
  const marks = {
    type: "scatter",
    mode: "markers+text",
    x: hit.map(([, at]) => wallClock(at)),
    y: hit.map(([number]) => rows[number]),
    text: hit.map(([, , run]) => ` ${escapeText(run)}`),
    textposition: "middle right",
    textfont: { color: ink("--stalled-ink"), size: 11 },
    marker: { symbol: "x", size: 11, color: ink("--stalled") },
    hovertemplate: "%{y}: %{x|%-d %b %H:%M}%{text}<extra></extra>",
  };
  const layout = layoutOf(Number(element.dataset.h), {
    hovermode: "closest",
    barmode: "overlay",
    margin: { l: 8, r: 16, t: 8, b: 8 },
    xaxis: { type: "date", range, tickformat: until - since > 48 * (HOUR / 1000) ? "%-d %b" : "%H:%M", showgrid: true, nticks: 6 },
    yaxis: { type: "category", categoryorder: "array", categoryarray: rows.toReversed(), range: [-0.6, rows.length - 0.4], showgrid: false, rangemode: "normal", tickmode: "array", tickvals: rows, ticktext: rows, tickfont: { size: 12, color: ink("--ink") } },
  });
  window.Plotly.react(element, [bars, marks], layout, CONFIG);
}

function each(attribute, draw) {
  for (const element of document.querySelectorAll(`[data-${attribute}]`)) {
    const data = document.getElementById(element.getAttribute(`data-${attribute}`));
    if (data) draw(element, JSON.parse(data.textContent));
  }
}

function drawAll() {
  if (!window.Plotly) return;
  each("dry-windows", drawWindows);
  each("dry-lanes", drawLanes);
  for (const button of document.querySelectorAll("[data-dry-as]")) button.setAttribute("aria-pressed", String(button.dataset.dryAs === shownAs));
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-dry-as]");
  if (!button) return;
  shownAs = button.dataset.dryAs;
  drawAll();
});

drawAll();
document.addEventListener("themechange", drawAll);
document.body.addEventListener("htmx:afterSettle", drawAll);
