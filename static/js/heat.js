/* The month as a table: arrow keys move between its cells, the card beside a cell says what it holds, a switch shows idle instead. */
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const cells = (row) => [...row.querySelectorAll("td")];
const rowsOf = (table) => [...table.tBodies[0].rows];

function placeOf(cell) {
  const row = cell.parentElement;
  return [cells(row).indexOf(cell), row.sectionRowIndex];
}

/** One cell of the table is in the order of the Tab key: where the reader was last, at first the newest known. */
function enter(table, cell) {
  for (const other of table.querySelectorAll("td[tabindex='0']")) other.tabIndex = -1;
  if (cell) cell.tabIndex = 0;
}

function move(event) {
  const cell = event.target.closest(".heat tbody td");
  const step = MOVES[event.key];
  if (!cell || !(step || event.key === "Home" || event.key === "End")) return;
  event.preventDefault();
  const table = cell.closest("table");
  const rows = rowsOf(table);
  const [x, y] = placeOf(cell);
  const last = cells(rows[y]).length - 1;
  const to = step ? [Math.min(last, Math.max(0, x + step[0])), Math.min(rows.length - 1, Math.max(0, y + step[1]))] : [event.key === "Home" ? 0 : last, y];
  const next = cells(rows[to[1]])[to[0]];
  enter(table, next);
  next.focus();
}

function show(cell) {
  const card = document.querySelector(".card-tip");
  if (!card) return;
  const table = cell.closest("table");
  const [x, y] = placeOf(cell);
  const heading = document.createElement("h3");
  heading.textContent = `${table.tHead.querySelectorAll("th")[x].textContent.trim()} ${String(y).padStart(2, "0")}:00–${String(y + 1).padStart(2, "0")}:00`;
  const words = document.createElement("p");
  words.textContent = cell.textContent.trim();
  card.replaceChildren(heading, words);
  card.hidden = false;
  const box = cell.getBoundingClientRect();
  card.style.left = `${Math.max(8, Math.min(innerWidth - card.offsetWidth - 8, box.left))}px`;
  card.style.top = `${box.bottom + card.offsetHeight + 8 < innerHeight ? box.bottom + 6 : box.top - card.offsetHeight - 6}px`;
}

function hide() {
  const card = document.querySelector(".card-tip");
  if (card) card.hidden = true;
}

function switchTo(button) {
  const panel = button.closest("[data-heat-panel]");
  const word = button.dataset.heatSet;
  for (const other of panel.querySelectorAll("[data-heat-set]")) other.setAttribute("aria-pressed", String(other === button));
  panel.querySelector(".heat").dataset.show = word;
  for (const said of panel.querySelectorAll("[data-heat-word]")) said.hidden = said.dataset.heatWord !== word;
}

function start() {
  for (const table of document.querySelectorAll(".heat")) {
    if (table.querySelector("td[tabindex='0']")) continue;
    for (const cell of table.querySelectorAll("tbody td")) cell.tabIndex = -1;
    enter(table, [...table.querySelectorAll("tbody td[data-s]")].at(-1) ?? table.querySelector("tbody td"));
  }
}

start();
document.body.addEventListener("htmx:afterSettle", start);
document.addEventListener("keydown", (event) => (event.key === "Escape" ? hide() : move(event)));
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-heat-set]");
  if (button) switchTo(button);
});
document.addEventListener("focusin", ({ target }) => (target.matches(".heat tbody td") ? show(target) : hide()));
document.addEventListener("mouseover", ({ target }) => {
  const cell = target.closest(".heat tbody td");
  if (cell) show(cell);
  else if (target.closest("[data-heat-panel]")) hide();
});
