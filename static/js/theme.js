/* Light or dark: follows the system until a person chooses. Listeners hear "themechange" and draw again. */
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const announce = () => document.dispatchEvent(new CustomEvent("themechange"));

function toggle() {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    /* Storage is blocked: the choice lasts for this page. */
  }
  announce();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-toggle]")) toggle();
});
system.addEventListener("change", announce);
