/* Idle: countdowns tick, and the page is refreshed while it is looked at. What somebody is about to answer stays as it is. */
import { startPulse } from "./live.js";
import { startCountdowns } from "./countdown.js";

document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  const part = event.detail.target;
  if (part.querySelector("details[open]") || part.matches(":has(input:focus, button:focus, a:focus, summary:focus)")) event.detail.shouldSwap = false;
});

startCountdowns();
startPulse();
