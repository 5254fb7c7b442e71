/* Swagger UI knows dark by a class of its own. */
import "./theme.js";

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  root.classList.toggle("dark-mode", dark);
}

document.addEventListener("themechange", follow);
follow();
