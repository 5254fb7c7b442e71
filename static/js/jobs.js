/* The page of a job while it goes on: what has changed is put in, part by part, and nothing else is touched.
   A part in which somebody reads or types stays: with text selected in it, a dialog open, or a field in use. */
import { tick } from "./ages.js";

const ASK_MS = 3000;
const AFTER_END_MS = 10000; // what is found after the end still comes
const ROUNDS_AFTER_END = 12;
const FOCUSABLE = "a[href], button, summary, [tabindex]";

const page = document.querySelector("[data-job]");
/* What the server said of each part the last time; ages tick by themselves, tokens of forms differ in each answer: neither is a change. */
const said = new Map();
const words = (part) => part.outerHTML.replace(/(<time class="age[^>]*>)[^<]*|(name="csrfmiddlewaretoken" value=)"\w*"/g, "$1$2");

function isEngaged(part) {
  const selection = getSelection();
  if (!selection.isCollapsed && part.contains(selection.anchorNode)) return true;
  return part.querySelector("dialog[open], details.menu[open], :is(input, textarea, select):focus") !== null;
}

/** What a reader opened stays open; what had the focus keeps it. */
function replace(old, fresh) {
  const open = new Map([...old.querySelectorAll("details")].map((one) => [one.querySelector("summary")?.textContent, one.open]));
  for (const one of fresh.querySelectorAll("details")) {
    const known = open.get(one.querySelector("summary")?.textContent);
    if (known !== undefined) one.open = known;
  }
  const place = [...old.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  const scrolled = [...old.querySelectorAll(".tablewrap")].map((one) => one.scrollLeft);
  old.replaceWith(fresh);
  window.htmx?.process(fresh);
  fresh.querySelectorAll(".tablewrap").forEach((one, number) => (one.scrollLeft = scrolled[number] ?? 0));
  if (place >= 0) fresh.querySelectorAll(FOCUSABLE)[place]?.focus({ preventScroll: true });
}

function bring(fresh, old) {
  const text = words(fresh);
  if (said.get(fresh.id) === text || "keeps" in fresh.dataset) return;
  if (old && isEngaged(old)) return; // the next round tries again
  said.set(fresh.id, text);
  if (old) replace(old, fresh);
}

function bringAll(from, into) {
  const wanted = [...from.children];
  const ids = new Set(wanted.map((part) => part.id));
  [...into.children].filter((part) => !ids.has(part.id) && !isEngaged(part)).forEach((part) => part.remove());
  let before = null;
  for (const fresh of wanted) {
    const old = document.getElementById(fresh.id);
    if (old) bring(fresh, old);
    else {
      said.set(fresh.id, words(fresh));
      if (before) before.after(fresh);
      else into.prepend(fresh);
      window.htmx?.process(fresh);
    }
    before = document.getElementById(fresh.id);
  }
}

function take(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("job");
  if (!fresh) return;
  // Another attempt has another log, other machines and other charts.
  if (fresh.dataset.attempt !== page.dataset.attempt) location.reload();
  const from = [...fresh.querySelectorAll("[data-parts]")];
  [...page.querySelectorAll("[data-parts]")].forEach((into, number) => bringAll(from[number], into));
  if (page.dataset.state !== fresh.dataset.state) document.getElementById("job-says").textContent = fresh.dataset.state;
  page.dataset.state = fresh.dataset.state;
  if (!("goesOn" in fresh.dataset)) delete page.dataset.goesOn;
  document.dispatchEvent(new CustomEvent("jobchange"));
  tick();
}

let left = ROUNDS_AFTER_END;

async function ask() {
  if (!document.hidden) {
    try {
      const response = await fetch(location.href, { cache: "no-store", headers: { "HX-Request": "true" } });
      if (response.ok && !response.redirected) take(await response.text());
    } catch {
      /* The network is away; the next round tries again. */
    }
  }
  const goesOn = "goesOn" in page.dataset;
  if (goesOn || left-- > 0) setTimeout(ask, goesOn ? ASK_MS : AFTER_END_MS);
}

for (const part of page.querySelectorAll("[data-parts] > *")) said.set(part.id, words(part));
if ("goesOn" in page.dataset) setTimeout(ask, ASK_MS);
