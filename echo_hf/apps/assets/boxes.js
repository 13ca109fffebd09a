// Boxes of the screenshot: a row of numbers each, and a frame over the image.
const numbers = (text) => (/^\s*(\d+)[\s,;]+(\d+)[\s,;]+(\d+)[\s,;]+(\d+)\s*$/.exec(text) ?? []).slice(1).map(Number);

function addBox(as, text, isNew = false) {
  const row = document.createElement("div");
  row.className = "box";
  const select = document.createElement("select");
  select.setAttribute("aria-label", "Role of the box");
  for (const one of ["input", "output"]) select.append(new Option(one, one, one === as, one === as));
  const field = document.createElement("input");
  field.value = text;
  field.placeholder = "left, top, right, bottom";
  field.setAttribute("aria-label", "Left, top, right, bottom");
  field.autocomplete = "off";
  const drop = document.createElement("button");
  drop.type = "button";
  drop.dataset.box = "drop";
  drop.setAttribute("aria-label", "Remove the box");
  drop.textContent = "✕";
  row.append(select, field, drop);
  find(".boxes .list").append(row);
  if (isNew) field.focus();
}

function dropBox(row) {
  row.remove();
  drawBoxes();
  changed(0);
}

function drawBoxes() {
  const shot = find(".shot");
  if (!shot) return;
  shot.querySelectorAll(".frame").forEach((one) => one.remove());
  const { width, height } = find(".boxes").dataset;
  for (const row of all(".box")) {
    const [left, top, right, bottom] = numbers(row.querySelector("input").value);
    if (bottom === undefined) continue;
    frame(row.querySelector("select").value, left / width, top / height, right / width, bottom / height);
  }
}

function frame(as, left, top, right, bottom) {
  const made = document.createElement("div");
  made.className = `frame ${as}`;
  made.textContent = as;
  const share = (value) => `${100 * value}%`;
  Object.assign(made.style, { left: share(left), top: share(top), width: share(right - left), height: share(bottom - top) });
  find(".shot").append(made);
  return made;
}

let from = null;
const place = (event) => {
  const at = find(".shot").getBoundingClientRect();
  const within = (value) => Math.min(1, Math.max(0, value));
  return [within((event.clientX - at.left) / at.width), within((event.clientY - at.top) / at.height)];
};
const around = (to) => [Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])];

element.addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.(".shot") || event.pointerType === "touch") return;
  event.preventDefault();
  from = place(event);
});
document.addEventListener("pointermove", (event) => {
  if (!from) return;
  find(".frame.new")?.remove();
  frame("new", ...around(place(event)));
});
document.addEventListener("pointerup", (event) => {
  if (!from) return;
  const { width, height } = find(".boxes").dataset;
  const [left, top, right, bottom] = around(place(event));
  from = null;
  find(".frame.new")?.remove();
  const box = [left * width, top * height, right * width, bottom * height].map(Math.round);
  if (box[2] - box[0] < 4 || box[3] - box[1] < 4) return;
  addBox("output", box.join(", "));
  drawBoxes();
  changed(0);
});
