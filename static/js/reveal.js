/* Shows and hides what is typed into a password field. */
for (const button of document.querySelectorAll("[data-reveal]"))
  button.addEventListener("click", () => {
    const input = document.getElementById(button.dataset.reveal);
    const shown = input.type === "text";
    input.type = shown ? "password" : "text";
    button.textContent = shown ? button.dataset.show : button.dataset.hide;
    button.setAttribute("aria-pressed", String(!shown));
  });
