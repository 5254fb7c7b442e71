/* A part of the page in which somebody is about to answer stays as it is when the page refreshes itself. */
const ENGAGED = "details.menu[open], form :is(input, button, select):focus";

export function keepAnswers() {
  document.body.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    if (detail.target.querySelector(ENGAGED)) detail.shouldSwap = false;
  });
}
