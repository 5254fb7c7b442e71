/* The small script behind every page. Everything readable works without it. */
const root = document.documentElement;

const isDark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    /* Storage is blocked: the choice lasts for this page. */
  }
  document.dispatchEvent(new CustomEvent("themechange"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  document.dispatchEvent(new CustomEvent("themechange")),
);
