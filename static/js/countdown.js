/* Countdowns to a stop: `data-left` is what the server said was left, in seconds, when the part of the page was drawn. */
const TICK_MS = 1000;
const HOUR = 3600;

/** As the server writes it: "3:20" within the hour, "4 h 05" beyond. */
function leftText(seconds, words) {
  const pad = (number) => String(number).padStart(2, "0");
  if (seconds < HOUR) return `${Math.floor(seconds / 60)}:${pad(seconds % 60)}`;
  return words.replace("%(hours)d", String(Math.floor(seconds / HOUR))).replace("%(minutes)02d", pad(Math.floor((seconds % HOUR) / 60)));
}

function show(element) {
  element.dueAt ??= Date.now() + Number(element.dataset.left) * 1000;
  const left = Math.max(0, Math.round((element.dueAt - Date.now()) / 1000));
  const text = leftText(left, element.dataset.words || "%(hours)d h %(minutes)02d");
  if (element.textContent !== text) element.textContent = text;
}

export function startCountdowns() {
  const tick = () => !document.hidden && document.querySelectorAll("[data-left]").forEach(show);
  document.body.addEventListener("htmx:oobAfterSwap", tick);
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, TICK_MS);
  tick();
}
