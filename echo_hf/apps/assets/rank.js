let chosen = 0;

const cards = () => [...element.querySelectorAll(".card")];

const holdsBack = (wanted) => wanted.kind === "next" && warned();

function arrange(isNew) {
  if (isNew) chosen = 0;
  choose(chosen, false);
}

function choose(item, scroll = true) {
  const all = cards();
  if (!all.length) return;
  chosen = (item + all.length) % all.length;
  all.forEach((card, at) => card.classList.toggle("chosen", at === chosen));
  all[chosen].focus({ preventScroll: !scroll });
}

// A sample counts only when each image has a rank or cannot be ranked: who leaves another is asked.
function warned() {
  const open = [...element.querySelectorAll(".card:not(.ranked, .barred) .bar b")];
  const ask = element.querySelector(".ask");
  if (!open.length || ask.textContent || board().classList.contains("impossible")) return false;
  const all = open.length === cards().length;
  const letters = all ? "Nothing is" : `${open.map((letter) => letter.textContent).join(", ")} not`;
  ask.textContent = `${letters} ranked, so this sample will not count. Next again leaves it.`;
  return true;
}
element.addEventListener("click", (event) => {
  const named = event.target.closest("[data-name]");
  if (named) return enter(named.dataset.name);
  const card = event.target.closest(".card");
  if (card) choose(Number(card.dataset.item), false);
  const button = event.target.closest("[data-act]");
  if (button) return send(button.dataset.act, card ? { item: chosen } : {});
  if (event.target.matches(".card img")) return zoom(event.target, chosen);
  if (event.target.matches("img.zoom")) return zoom(event.target);
  const chip = event.target.closest(".chip");
  if (chip) return choose(Number(chip.dataset.item));
  const slot = event.target.closest(".slot");
  if (slot) send("place", { item: chosen, rank: Number(slot.dataset.rank) });
});

element.addEventListener("focusin", (event) => {
  const card = event.target.closest(".card");
  if (card && Number(card.dataset.item) !== chosen) choose(Number(card.dataset.item), false);
});

let dragged = null;
element.addEventListener("dragstart", (event) => {
  const from = event.target.closest("[data-item]");
  if (!from) return;
  dragged = Number(from.dataset.item);
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", from.querySelector("b")?.textContent ?? "");
  board().classList.add("dragging");
});

const target = (event) => event.target.closest?.(".slot, .gap");
element.addEventListener("dragover", (event) => {
  element.querySelectorAll(".aim").forEach((one) => one.classList.remove("aim"));
  const place = target(event);
  if (dragged === null || !place) return;
  event.preventDefault();
  place.classList.add("aim");
});

element.addEventListener("drop", (event) => {
  const place = target(event);
  if (dragged === null || !place) return;
  event.preventDefault();
  chosen = dragged;
  const { rank, insert } = place.dataset;
  if (rank) send("place", { item: dragged, rank: Number(rank) });
  else send("insert", { item: dragged, rank: Number(insert) });
});

element.addEventListener("dragend", () => {
  dragged = null;
  board()?.classList.remove("dragging");
  element.querySelectorAll(".aim").forEach((one) => one.classList.remove("aim"));
});

const KEYS = {
  arrowup: () => send("better", { item: chosen }),
  arrowdown: () => send("worse", { item: chosen }),
  arrowleft: () => choose(chosen - 1),
  arrowright: () => choose(chosen + 1),
  backspace: () => send("clear", { item: chosen }),
  delete: () => send("clear", { item: chosen }),
  enter: () => send("next"),
  n: () => send("next"),
  p: () => send("back"),
  u: () => send("undo"),
  x: () => send("bar", { item: chosen }),
  i: () => send("impossible"),
  " ": () => zoom(cards()[chosen].querySelector("img"), chosen),
};

function key(event) {
  if (!board() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("input, textarea, select, summary")) return;
  const pressed = event.key.toLowerCase();
  const onButton = event.target.closest?.("button") && ["enter", " "].includes(pressed);
  if (onButton) return;
  if (close()) {
    // Side by side is not enough for small differences: the next one takes the very same place.
    const step = { arrowleft: -1, arrowright: 1 }[pressed];
    if (step) {
      choose(chosen + step);
      KEYS[" "]();
    }
    if (step || [" ", "escape"].includes(pressed)) return event.preventDefault();
  }
  const digit = /^Digit([1-9])$|^Numpad([1-9])$/.exec(event.code);
  const letter = pressed.length === 1 ? pressed.charCodeAt(0) - 97 : -1;
  if (digit) {
    const rank = Number(digit[1] ?? digit[2]);
    send(event.shiftKey ? "insert" : "place", { item: chosen, rank });
  } else if (letter >= 0 && letter < Math.min(cards().length, 8)) choose(letter);
  else if (KEYS[pressed]) {
    if (event.repeat && !pressed.startsWith("arrow")) return;
    KEYS[pressed]();
  } else return;
  event.preventDefault();
}

document.addEventListener("keydown", key);
watch("value", shown);
shown();
