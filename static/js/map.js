/* The fleet map: keys filter, tiles show a level, a card opens on hover and on focus, arrow keys move between blocks. */
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/* Moving straight on counts more than being near: a step sideways weighs three. */
const ACROSS_WEIGHT = 3;

const centre = (block) => {
  const box = block.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
};

/** The block that an arrow key leads to from this one, or null at the edge. */
export function neighbour(blocks, from, [dx, dy]) {
  const [x, y] = centre(from);
  let best = null;
  let cost = Infinity;
  for (const block of blocks) {
    if (block === from) continue;
    const [u, v] = centre(block);
    const along = (u - x) * dx + (v - y) * dy;
    const across = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
    if (along > 4 && along + across * ACROSS_WEIGHT < cost) {
      cost = along + across * ACROSS_WEIGHT;
      best = block;
    }
  }
  return best;
}

function filter(panel, key) {
  const on = key.getAttribute("aria-pressed") !== "true";
  panel.dataset.only = on ? key.dataset.s : "";
  applyFilter(panel);
}

/** Dims the tiles that the pressed key leaves out; also after new samples and new keys came. */
export function applyFilter(panel) {
  const only = panel.dataset.only || "";
  for (const key of panel.querySelectorAll(".key")) key.setAttribute("aria-pressed", String(key.dataset.s === only));
  for (const tile of panel.querySelectorAll(".tiles .gpu")) tile.classList.toggle("off", only !== "" && tile.dataset.s !== only);
}

function setView(panel, button) {
  for (const other of panel.querySelectorAll("[data-view-set]")) other.setAttribute("aria-pressed", String(other === button));
  const map = panel.querySelector(".map");
  if (button.dataset.viewSet) map.dataset.view = button.dataset.viewSet;
  else delete map.dataset.view;
  for (const tile of panel.querySelectorAll(".tiles .gpu")) writeTile(tile, map.dataset.view);
}

/** The number on a tile: how busy, or how full where memory is shown. */
export function writeTile(tile, view) {
  const word = tile.querySelector("b");
  if (word) word.textContent = tile.style.getPropertyValue(view === "mem" ? "--m" : "--u").trim();
}

function fact(list, label, text) {
  const term = document.createElement("dt");
  const value = document.createElement("dd");
  term.textContent = label;
  value.textContent = text;
  list.append(term, value);
}

function showCard(card, block, readText) {
  const tip = JSON.parse(block.dataset.tip);
  const heading = document.createElement("h3");
  for (const text of [tip.name, tip.price]) {
    const span = document.createElement("span");
    span.textContent = text;
    heading.append(span);
  }
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [label, text] of tip.facts) fact(list, label, text);
  if (block.dataset.read) fact(list, block.closest("[data-map]").dataset.readLabel, readText(Number(block.dataset.read)));
  card.replaceChildren(heading, list);
  card.hidden = false;
  place(card, block.getBoundingClientRect());
}

function place(card, box) {
  card.style.left = `${Math.max(8, Math.min(innerWidth - card.offsetWidth - 8, box.left))}px`;
  const below = box.bottom + card.offsetHeight + 8 < innerHeight;
  card.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - card.offsetHeight - 6)}px`;
}

export function startMap(panel, card, readText) {
  const blocks = [...panel.querySelectorAll(".machine")];
  const hide = () => {
    card.hidden = true;
  };
  panel.addEventListener("click", (event) => {
    const key = event.target.closest(".key");
    const view = event.target.closest("[data-view-set]");
    if (key) filter(panel, key);
    if (view) setView(panel, view);
  });
  const canHover = matchMedia("(hover: hover)").matches;
  for (const block of blocks) {
    if (canHover) {
      block.addEventListener("mouseenter", () => showCard(card, block, readText));
      block.addEventListener("mouseleave", hide);
    }
    block.addEventListener("focus", () => block.matches(":focus-visible") && showCard(card, block, readText));
    block.addEventListener("blur", hide);
  }
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const from = event.target.closest(".machine");
    const next = DIRECTIONS[event.key] && from ? neighbour(blocks, from, DIRECTIONS[event.key]) : null;
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
}
