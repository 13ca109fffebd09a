// The page asks; the server answers with the page as it is after that. One request at a time: what
// is done meanwhile waits in line. What is typed is kept in this browser until it is saved.
const WAIT_MS = 1200;
const LONGEST_WAIT_MS = 10000;
const waiting = [];
let asked = 0;
let pending = false;
let sent = null;
let timer = null;
let patience = null;
let focused = null;
let subject = null;
let typed = false;

const desk = () => element.querySelector(".desk");
const find = (selector) => element.querySelector(selector);
const all = (selector) => [...element.querySelectorAll(selector)];
const store = () => `echo-hf review ${desk().dataset.person} ${desk().dataset.subject}`;

function collect() {
  const roles = {};
  for (const one of all("[data-image]")) roles[one.dataset.image] = one.dataset.as;
  const boxes = all(".box").map((one) => [one.querySelector("select").value, one.querySelector("input").value]);
  const value = (name) => find(`[name="${name}"]`).value;
  return { prompt: value("prompt"), quality: value("quality"), note: value("note"), roles, boxes };
}

function apply(form) {
  for (const name of ["prompt", "quality", "note"]) find(`[name="${name}"]`).value = form[name];
  for (const one of all("[data-image]")) role(one, form.roles[one.dataset.image] ?? one.dataset.as);
  const list = find(".boxes .list");
  if (!list) return;
  list.replaceChildren();
  for (const [as, numbers] of form.boxes) addBox(as, numbers);
  drawBoxes();
}

function role(figure, as) {
  figure.dataset.as = as;
  for (const one of figure.querySelectorAll("[data-role]")) {
    one.setAttribute("aria-pressed", String(one.dataset.role === as));
  }
}

function send(kind, more = {}) {
  if (!desk()) return;
  clearTimeout(timer);
  waiting.push({ kind, ...more });
  ask();
}

function ask() {
  const from = desk();
  if (pending || !waiting.length || !from) return;
  pending = true;
  asked += 1;
  from.classList.add("saving");
  find(".saved").textContent = "saving";
  const form = collect();
  sent = JSON.stringify(form);
  const base = Number(from.dataset.base);
  patience = setTimeout(lost, LONGEST_WAIT_MS);
  // Of the sample that the page shows now: what was meant for one that was left is about nothing.
  trigger("submit", { ...waiting.shift(), person: from.dataset.person, subject: from.dataset.subject, base, form, answer: asked });
}

// Nothing is sent again: it may have been written down, and only the answer have got lost.
function lost() {
  waiting.length = 0;
  desk().classList.add("lost");
  find(".saved").textContent = "not saved: load the page again";
}

function changed(wait = WAIT_MS) {
  typed = true;
  localStorage.setItem(store(), JSON.stringify(collect()));
  if (!desk().classList.contains("lost")) find(".saved").textContent = "not saved yet";
  clearTimeout(timer);
  timer = setTimeout(() => send("edit"), wait);
}

function times() {
  for (const time of all("time")) {
    const at = new Date(time.dateTime);
    time.textContent = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  }
}

// What was in the fields when the server answered, and what it answers to.
let latest = null;

function shown() {
  const now = desk();
  times();
  if (!now) return;
  pending = false;
  clearTimeout(patience);
  const same = now.dataset.subject === subject;
  if (!same) {
    if (subject !== null && latest !== null && latest.text === sent) localStorage.removeItem(latest.key);
    waiting.length = 0;
    clearTimeout(timer);
    typed = false;
    if (subject !== null) window.scrollTo(0, 0);
    subject = now.dataset.subject;
  }
  const draft = localStorage.getItem(store());
  if (now.dataset.problem) {
    typed = true; // the fields show what was refused; it stays in this browser until it is mended
  } else if (draft !== null && draft !== sent && draft !== JSON.stringify(collect())) {
    apply(JSON.parse(draft));
    if (!typed) find(".saved").textContent = "what was not saved is back";
    changed();
  } else {
    localStorage.removeItem(store());
    typed = false;
  }
  latest = null;
  drawBoxes();
  if (same && focused) refocus();
  ask();
}

element.addEventListener("input", (event) => {
  if (!desk() || event.target.closest(".goto, .start")) return;
  remember(event.target);
  if (event.target.closest(".box")) drawBoxes();
  else changed();
});

element.addEventListener("change", (event) => {
  if (!desk() || event.target.closest(".goto, .start")) return;
  drawBoxes();
  changed(event.target.matches("select") ? 0 : 200);
});

function remember(field) {
  const boxes = all(".box input");
  const place = boxes.indexOf(field);
  focused = { name: field.name || null, place, start: field.selectionStart ?? null, end: field.selectionEnd ?? null };
}

function refocus() {
  const { name, place, start, end } = focused; // before the focus itself is remembered
  const field = name ? find(`[name="${name}"]`) : all(".box input")[place];
  if (!field) return;
  // A space at the end is no part of a prompt, but the next word is about to follow it.
  if (name === "prompt" && sent && field.value === JSON.parse(sent).prompt.trim()) field.value = JSON.parse(sent).prompt;
  field.focus({ preventScroll: true });
  if (start !== null && field.setSelectionRange) field.setSelectionRange(start, end);
}

// A field also loses the focus when the page is written anew: only a person's doing counts.
element.addEventListener("focusin", (event) => {
  if (event.target.matches("textarea, input")) remember(event.target);
  else focused = null;
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.("textarea, input")) focused = null;
});
document.addEventListener("selectionchange", () => {
  const field = document.activeElement;
  if (focused && field && element.contains(field) && field.matches("textarea, input")) remember(field);
});

element.addEventListener("click", (event) => {
  const named = event.target.closest("[data-name]");
  if (named) return enter(named.dataset.name);
  const over = event.target.closest(".over");
  if (over) return over.remove();
  const act = event.target.closest("[data-act]");
  if (act) return decide(act.dataset.act);
  const take = event.target.closest("[data-take]");
  if (take) return send("take", { event: Number(take.dataset.take) });
  const reading = event.target.closest("[data-reading]");
  if (reading) return send("boxes", { convention: reading.dataset.reading });
  const as = event.target.closest("[data-role]");
  if (as) {
    role(as.closest("[data-image]"), as.dataset.role);
    return changed(0);
  }
  const box = event.target.closest("[data-box]");
  if (box) return box.dataset.box === "add" ? addBox("output", "", true) : dropBox(box.closest(".box"));
  if (event.target.matches("img.zoom")) zoom(event.target);
});

function decide(kind) {
  focused = null;
  latest = { key: store(), text: JSON.stringify(collect()) };
  if (typed && ["next", "back"].includes(kind)) send("edit");
  send(kind);
}

function zoom(image) {
  const over = document.createElement("div");
  over.className = "over";
  over.setAttribute("role", "dialog");
  const large = document.createElement("img");
  large.src = image.src;
  large.alt = image.alt;
  over.append(large);
  element.append(over);
}

function enter(name) {
  const place = new URL(location.href);
  place.searchParams.set("person", name);
  location.assign(place);
}

element.addEventListener("submit", (event) => {
  event.preventDefault();
  focused = null;
  if (event.target.matches(".goto")) send("goto", { wanted: event.target.elements.wanted.value });
  else enter(event.target.elements.person.value);
});

const KEYS = {
  k: () => decide("keep"),
  r: () => decide("remove"),
  f: () => decide("flag"),
  u: () => decide("undo"),
  n: () => decide("next"),
  p: () => decide("back"),
  e: () => find('[name="prompt"]').focus(),
};

function key(event) {
  if (!desk() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const pressed = event.key.toLowerCase();
  if (pressed === "escape") {
    find(".over")?.remove();
    focused = null;
    if (element.contains(document.activeElement)) document.activeElement.blur();
    return;
  }
  // Between the page that was and the one that is, letters are still meant for the field.
  if (focused) return;
  if (event.target.closest?.("input, textarea, select, summary") || event.repeat) return;
  if (!KEYS[pressed]) return;
  KEYS[pressed]();
  event.preventDefault();
}

document.addEventListener("keydown", key);
watch("value", shown);
shown();
