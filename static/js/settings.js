/* Small helps on settings and sign-in pages; everything works without them. */
for (const button of document.querySelectorAll("[data-reveal]"))
  button.addEventListener("click", () => {
    const input = document.getElementById(button.dataset.reveal);
    const shown = input.type === "text";
    input.type = shown ? "password" : "text";
    button.textContent = shown ? button.dataset.show : button.dataset.hide;
    button.setAttribute("aria-pressed", String(!shown));
  });

for (const button of document.querySelectorAll("[data-copy]"))
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.done;
  });
