/* Keeps every `time.age` ticking on the server's clock; past three reading periods a figure looks old. */
const OLD_AFTER_PERIODS = 3;
/* Pages without a shell show no ages and say no units. */
const UNITS = JSON.parse(document.body.dataset.ageUnits || "[]");
const skewMs = Number(document.body.dataset.now || Date.now() / 1000) * 1000 - Date.now();

/** The server's now, in seconds since the epoch. */
export const serverNow = () => (Date.now() + skewMs) / 1000;

export function ageText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [size, words] = UNITS.find(([limit]) => whole >= limit) ?? UNITS.at(-1);
  return words.replace("%(n)d", String(Math.floor(whole / size)));
}

function show(element) {
  const seconds = serverNow() - Date.parse(element.dateTime) / 1000;
  const period = Number(element.dataset.period);
  const text = `${element.dataset.label ? `${element.dataset.label} ` : ""}${ageText(seconds)}`;
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("old", period > 0 && seconds > period * OLD_AFTER_PERIODS);
}

/** A newer reading arrived at `epochSeconds`; an older one changes nothing. */
export function touch(element, epochSeconds) {
  if (!(Date.parse(element.dateTime) / 1000 >= epochSeconds)) {
    element.dateTime = new Date(epochSeconds * 1000).toISOString();
    show(element);
  }
}

export function tick() {
  if (!document.hidden) document.querySelectorAll("time.age[datetime]").forEach(show);
}

setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);
