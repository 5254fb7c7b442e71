/* The inbox keeps itself fresh, without taking from the reader's hands what they hold: open menus, typed notes, selections. */
import { say } from "./dialogs.js";

const PULSE_MS = 10000;
const inbox = () => document.getElementById("inbox");
const kept = { picked: new Set(), open: new Set(), focus: "" };

/** Somebody chooses or types something in the list just now. */
function isBusy() {
  const typing = document.activeElement?.matches("#inbox input:not([type='checkbox']), #inbox select");
  return Boolean(typing || inbox()?.querySelector(".menu[open]"));
}

function beat() {
  if (!document.hidden && !isBusy()) window.htmx?.trigger(inbox(), "pulse");
}

const picks = () => [...(inbox()?.querySelectorAll("[data-pick]") ?? [])];

/** The bar of what to do with several shows while several are picked; without this script it is always there. */
function showBulk() {
  const bulk = document.getElementById("bulk");
  if (!bulk) return;
  const count = picks().filter((box) => box.checked).length;
  bulk.hidden = count === 0;
  bulk.querySelector("[data-picked]").dataset.picked = String(count);
}

function remember() {
  kept.picked = new Set(picks().filter((box) => box.checked).map((box) => box.value));
  kept.open = new Set([...inbox().querySelectorAll("details.sig[open]")].map((details) => details.id));
  kept.focus = document.activeElement?.closest("#inbox") ? document.activeElement.id : "";
  kept.line = document.activeElement?.closest(".group")?.id ?? "";
  kept.next = document.getElementById(kept.line)?.nextElementSibling?.id ?? "";
}

function restore() {
  for (const box of picks()) box.checked = kept.picked.has(box.value);
  for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
  showBulk();
  if (!kept.line && !kept.focus) return;
  const ways = [kept.focus, kept.line.replace("alert", "title"), kept.next.replace("alert", "title"), "tab-open"];
  ways.map((id) => id && document.getElementById(id)).find(Boolean)?.focus();
}

document.addEventListener("change", (event) => event.target.matches("[data-pick]") && showBulk());
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target !== inbox()) return;
  // A refresh that was under way when a menu was opened comes again later.
  if (event.detail.requestConfig.triggeringEvent?.type === "pulse" && isBusy()) event.detail.shouldSwap = false;
  else remember();
});
document.body.addEventListener("htmx:afterSettle", (event) => event.target.id === "inbox" && restore());
document.body.addEventListener("say", (event) => say(event.detail.value));
document.addEventListener("visibilitychange", beat);

/** Keys work while the focus is in the list, so that they take nothing from anybody who speaks to the machine. */
function step(line, forward) {
  const lines = [...inbox().querySelectorAll(".group")];
  const next = lines[lines.indexOf(line) + (forward ? 1 : -1)];
  next?.querySelector("h3 a").focus();
}

const KEYS = {
  j: (line) => step(line, true),
  k: (line) => step(line, false),
  x: (line) => line.querySelector("[data-pick]")?.click(),
  a: (line) => openMenu(line, "a"),
  s: (line) => openMenu(line, "s"),
};

function openMenu(line, name) {
  const menu = line.querySelector(`[data-menu="${name}"]`);
  if (!menu) return;
  menu.open = true;
  menu.querySelector("div input, div button").focus();
}

document.addEventListener("keydown", (event) => {
  const line = event.target.closest?.("#inbox .group");
  if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type='checkbox'])")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act(line);
});

showBulk();
setInterval(beat, PULSE_MS);
