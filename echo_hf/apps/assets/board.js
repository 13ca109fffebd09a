// What the boards of all apps share; each has a holdsBack and an arrange of its own.
// The page asks; the server answers with the page as it is after that. One request at a time: what
// is done meanwhile waits in line, so that nothing overtakes or is lost.
const waiting = [];
let asked = 0;
let pending = false;
let patience = null;
const LONGEST_WAIT_MS = 10000;

const board = () => element.querySelector(".board");

function send(kind, more = {}) {
  if (!board()) return;
  waiting.push({ kind, ...more });
  ask();
}

function ask() {
  const from = board();
  if (pending || !waiting.length || !from) return;
  const wanted = waiting.shift();
  if (holdsBack(wanted)) return ask();
  pending = true;
  asked += 1;
  from.classList.add("saving");
  element.querySelector(".saved").textContent = "saving";
  // Of the sample and the person that the page shows now, which may be others than when the key
  // was pressed only if the sample was left: then what waits is about nothing any more.
  const { person, subject } = from.dataset;
  patience = setTimeout(lost, LONGEST_WAIT_MS);
  trigger("submit", { ...wanted, person, subject, answer: asked });
}

// Nothing is sent again: it may have been written down, and only the answer have got lost.
function lost() {
  board().classList.add("lost");
  element.querySelector(".saved").textContent = "not saved: load the page again";
}

function shown() {
  const now = board();
  for (const time of element.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    time.textContent = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  }
  if (!now) return;
  pending = false;
  clearTimeout(patience);
  if (now.dataset.subject !== element.dataset.subject) {
    element.dataset.subject = now.dataset.subject;
    waiting.length = 0;
    arrange(true);
  } else arrange(false);
  ask();
}

function zoom(image, item = null) {
  close();
  const over = document.createElement("div");
  over.className = "over";
  over.setAttribute("role", "dialog");
  over.setAttribute("aria-label", image.alt);
  const large = document.createElement("img");
  large.src = image.src;
  large.alt = image.alt;
  const name = document.createElement("b");
  name.textContent = item === null ? "" : image.alt;
  over.append(large, name);
  over.addEventListener("click", close);
  element.append(over);
}

function close() {
  const over = element.querySelector(".over");
  if (over) over.remove();
  return over !== null;
}

function enter(name) {
  const place = new URL(location.href);
  place.searchParams.set("person", name);
  location.assign(place);
}

element.addEventListener("submit", (event) => {
  event.preventDefault();
  enter(event.target.elements.person.value);
});
