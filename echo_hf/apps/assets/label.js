const holdsBack = () => false;

function arrange(isNew) {
  if (isNew) window.scrollTo(0, 0);
}

const KEYS = {
  y: () => send("yes"),
  n: () => send("no"),
  u: () => send("unclear"),
  z: () => send("undo"),
  backspace: () => send("undo"),
  " ": () => zoom(element.querySelector(".asked img")),
};

element.addEventListener("click", (event) => {
  const named = event.target.closest("[data-name]");
  if (named) return enter(named.dataset.name);
  const button = event.target.closest("[data-act]");
  if (button) return send(button.dataset.act);
  if (event.target.matches("img.zoom")) zoom(event.target);
});

document.addEventListener("keydown", (event) => {
  if (!board() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("input, textarea, select, summary")) return;
  const pressed = event.key.toLowerCase();
  if (event.target.closest?.("button") && pressed === " ") return;
  const wasLarge = close();
  // A key that is held down must not answer for the outputs that follow.
  if (wasLarge && [" ", "escape"].includes(pressed)) return event.preventDefault();
  if (!KEYS[pressed] || event.repeat) return;
  if (pressed === " " && !element.querySelector(".asked img")) return;
  KEYS[pressed]();
  event.preventDefault();
});

watch("value", shown);
shown();
