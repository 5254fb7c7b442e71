/* Dialogs, toasts, copying, menus. All by delegation, so that parts swapped in later work too. */
export function say(text) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.textContent = text;
  document.querySelector(".toasts")?.append(toast);
  setTimeout(() => toast.remove(), 5000);
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    say(button.dataset.copied || "✓");
  } catch {
    /* No clipboard on plain http or without permission: select the text beside the button instead. */
    const text = button.parentElement.querySelector("code");
    if (text) getSelection().selectAllChildren(text);
  }
}

const closeMenus = (except) =>
  document.querySelectorAll(".menu[open], .rail details[open]").forEach((menu) => {
    if (menu !== except) menu.open = false;
  });

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-open]");
  if (opener) document.getElementById(opener.dataset.open)?.showModal();
  /* Such a button submits nothing: Enter in a field of the dialog is for the one that acts. */
  event.target.closest("[data-close]")?.closest("dialog").close();
  const copier = event.target.closest("[data-copy]");
  if (copier) copy(copier);
  closeMenus(event.target.closest("details"));
});

document.addEventListener("input", (event) => {
  const expected = event.target.dataset?.confirm;
  if (expected === undefined) return;
  event.target.form.querySelector(".risk.solid").disabled = event.target.value !== expected;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    document.querySelector(".menu[open] > summary, .rail details[open] > summary")?.focus();
    closeMenus(null);
  }
  const typing = /INPUT|TEXTAREA|SELECT/.test(event.target.tagName);
  const search = document.getElementById("q");
  if (event.key === "/" && !typing && search) {
    event.preventDefault();
    search.focus();
  }
});

/* A question that the server drew into a dialog is asked as soon as it is there; what must be typed keeps its button shut. */
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target.tagName !== "DIALOG") return;
  const expected = detail.target.querySelector("[data-confirm]");
  if (expected) expected.form.querySelector(".risk.solid").disabled = expected.value !== expected.dataset.confirm;
  if (!detail.target.open) detail.target.showModal();
});
