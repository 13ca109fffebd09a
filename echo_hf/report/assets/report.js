"use strict";
// The gallery: a few samples at a time, made from the page's data, and every image large beside
// the others of its sample. Whatever posts, judges or systems said becomes text of an element, and
// never markup.
(() => {
  const PAGE = 12;
  const data = JSON.parse(document.getElementById("gallery-data").textContent);
  const form = document.getElementById("filters");
  const list = document.getElementById("samples");
  const more = document.getElementById("more");
  const shown = document.getElementById("shown");
  let found = [];
  let at = 0;

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const named = (name) => data.names[name] || name;
  const rated = (value) => String(Math.round(value * 100) / 100);

  const image = (number, alt) => {
    const known = number === null ? null : data.pictures[number];
    if (!known) return null;
    const { source, width, height } = known;
    return element("img", { src: source, width, height, alt, loading: "lazy", decoding: "async" });
  };
  const card = (outcome, reason) =>
    element("div", { class: "missing" }, element("b", {}, outcome),
      reason ? element("span", {}, reason) : null);
  const cell = (body, kind, ...caption) =>
    element("li", { class: kind },
      element("figure", {}, body, element("figcaption", {}, ...caption)));

  const given = (sample) => sample.inputs.map((number, index, all) => {
    const label = all.length > 1 ? `input ${index + 1}` : "input";
    return cell(image(number, label) || card("cannot be shown"), "given", label);
  });
  const posted = (sample) => sample.posted.map((number) =>
    cell(image(number, "posted result") || card("cannot be shown"), "given", "as posted"));

  const overall = (sample, system) => sample.ratings
    .filter((row) => row.system === system && row.rubric === "overall" && row.value !== null)
    .map((row) => rated(row.value));
  const ended = (row) => (row.outcome === "ok" ? null : row.outcome);
  const output = (sample, system) => {
    const name = data.systems[system];
    const row = sample.outputs[system];
    const body = row
      ? image(row.image, `output of ${name}`)
        || card(ended(row) || "no image", row.reason || (row.text || "").slice(0, 160))
      : card("not tried");
    const ratings = overall(sample, system);
    const small = ratings.length
      ? element("span", { class: "small" }, `rated ${ratings.join(" · ")}`) : null;
    return cell(body, null, element("bdi", {}, name), small);
  };

  const rating = (row) => {
    const failed = Object.hasOwn(data.failed, row.judge) ? data.failed[row.judge] : null;
    const flag = failed
      ? element("span", { class: "flag" }, `failed its audit: ${failed.join(", ")}`) : null;
    const kind = row.rubric + (row.repeat ? `, repeat ${row.repeat}` : "");
    return element("tr", {},
      element("th", { scope: "row" }, element("bdi", {}, data.systems[row.system] ?? "?")),
      element("td", {}, element("bdi", {}, row.judge), " ", flag),
      element("td", {}, kind),
      element("td", {}, row.value === null ? ended(row) || "none" : rated(row.value)),
      element("td", { dir: "auto" }, row.explanation || ""));
  };
  const ratings = (rows) => {
    const heads = ["System", "Judge", "Rubric", "Rating", "Explanation"];
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "ratings" },
      element("table", { class: "ratings" },
        element("caption", { class: "unseen" }, "Ratings with explanations"),
        element("thead", {}, element("tr", {},
          ...heads.map((head) => element("th", { scope: "col" }, head)))),
        element("tbody", {}, ...rows.map(rating))));
  };
  // Explanations are long and seldom read: they are made when they are asked for.
  const folded = (title, make) => {
    const box = element("details", {}, element("summary", {}, title));
    box.addEventListener("toggle", () => { if (box.childNodes.length < 2) box.append(make()); });
    return box;
  };
  const feedback = (rows) => {
    const box = element("div");
    for (const row of rows) {
      const kind = [row.verdict, row.keyword].filter(Boolean).join(": ");
      box.append(element("blockquote", { class: "said", dir: "auto" }, row.text,
        kind ? element("small", {}, kind) : null));
    }
    return box;
  };
  const source = (url) => {
    // The page's own check, once more: only pages of the web become links.
    if (!/^https?:\/\//.test(url)) return element("span", {}, url);
    return element("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, "post");
  };
  const meta = (sample) => element("p", { class: "meta" },
    element("span", {}, named(sample.split)),
    sample.task ? element("span", {}, named(sample.task)) : null,
    ...sample.urls.slice(0, 3).map(source),
    ...sample.flags.map((flag) => element("span", { class: "flag" }, flag)),
    element("span", {}, sample.id));

  const article = (sample, chosen) => {
    const title = `prompt-${data.samples.indexOf(sample)}`;
    const prompt = element("h3", { class: "prompt clamped", dir: "auto", id: title }, sample.prompt);
    const systems = chosen < 0 ? data.systems.keys() : [chosen];
    const strip = element("ul",
      { class: "strip", tabindex: "0", "aria-label": "inputs and outputs" },
      ...given(sample), ...posted(sample), ...[...systems].map((one) => output(sample, one)));
    const rows = sample.ratings.filter((row) => chosen < 0 || row.system === chosen);
    return element("article",
      { class: "sample", "aria-labelledby": title, "data-sample": sample.id },
      prompt, unfold(prompt), meta(sample), strip,
      rows.length ? folded(`Ratings (${rows.length})`, () => ratings(rows)) : null,
      sample.feedback.length
        ? folded(`Feedback (${sample.feedback.length})`, () => feedback(sample.feedback)) : null);
  };
  const unfold = (prompt) => {
    const button = element("button",
      { class: "plain", type: "button", hidden: "", "aria-expanded": "false" }, "Whole prompt");
    button.addEventListener("click", () => {
      const folded = prompt.classList.toggle("clamped");
      button.textContent = folded ? "Whole prompt" : "Less";
      button.setAttribute("aria-expanded", String(!folded));
    });
    return button;
  };

  const words = (sample) => {
    if (sample.words === undefined) {
      const said = sample.feedback.map((row) => row.text);
      const reasons = sample.ratings.map((row) => row.explanation);
      const made = sample.outputs.map((row) => (row ? [ended(row), row.reason, row.text] : []));
      sample.words = [sample.id, sample.prompt, ...said, ...reasons, ...made.flat()]
        .join("\n").toLowerCase();
    }
    return sample.words;
  };
  const unmade = (row) => !row || row.image === null || data.pictures[row.image] === null;
  const kinds = {
    all: () => true,
    unmade: (sample, chosen) => sample.outputs.some((row, system) =>
      (chosen < 0 || system === chosen) && unmade(row)),
    flagged: (sample) => sample.flags.length > 0,
    feedback: (sample) => sample.feedback.length > 0,
  };
  const chosenSystem = () => data.systems.indexOf(form.elements.system.value);
  const fits = (sample) => {
    const { split, task, show, text: search } = form.elements;
    return (!split.value || sample.split === split.value)
      && (!task.value || sample.task === task.value)
      && kinds[show.value](sample, chosenSystem())
      && search.value.toLowerCase().split(/\s+/).every((word) => words(sample).includes(word));
  };

  // Only the browser knows which prompts it had to cut, and of none that is folded away.
  const offerWhole = () => {
    for (const button of list.querySelectorAll("button.plain[hidden]")) {
      const prompt = button.previousElementSibling;
      button.hidden = prompt.scrollHeight <= prompt.clientHeight + 2;
    }
  };
  list.closest("details").addEventListener("toggle", offerWhole);
  const grow = () => {
    const chosen = chosenSystem();
    const next = found.slice(at, at + PAGE);
    at += next.length;
    list.append(...next.map((sample) => article(sample, chosen)));
    reachable(list);
    offerWhole();
    more.hidden = at >= found.length;
  };
  const filter = () => {
    found = data.samples.filter(fits);
    at = 0;
    list.replaceChildren();
    shown.textContent = `${found.length.toLocaleString("en")} of `
      + `${data.samples.length.toLocaleString("en")} samples`;
    grow();
  };
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    const first = list.children.length;
    grow();
    const strip = list.children[first];
    if (strip) { strip.tabIndex = -1; strip.focus({ preventScroll: true }); }
  });

  // An image in the whole window: what stands beside it in its sample, and what judges said of it.
  const large = element("img");
  const about = element("div", { class: "about", "aria-live": "polite" });
  const others = element("div", { class: "others" });
  const step = (label, by) => {
    const button = element("button", { type: "button", "aria-label": label }, by < 0 ? "←" : "→");
    button.addEventListener("click", () => look(place + by));
    return button;
  };
  const close = element("button", { type: "button", "aria-label": "Close" }, "✕");
  const viewer = element("dialog", { class: "viewer", "aria-label": "image" },
    element("div", { class: "stage" }, large),
    element("div", { class: "aside" },
      element("div", { class: "steps" }, step("Image before", -1), step("Next image", 1), close),
      about, others));
  close.addEventListener("click", () => viewer.close());
  document.body.append(viewer);
  let images = [];
  let place = 0;

  const imagesOf = (sample) => [
    ...sample.inputs.map((number, index, all) =>
      ({ number, alt: all.length > 1 ? `input ${index + 1}` : "input" })),
    ...sample.posted.map((number) => ({ number, alt: "posted result" })),
    ...sample.outputs.map((row, system) =>
      ({ number: row ? row.image : null, alt: `output of ${data.systems[system]}`, system })),
  ].filter(({ number }) => number !== null && data.pictures[number])
    .map((one) => ({ ...one, sample, known: data.pictures[one.number] }));
  const said = ({ sample, system }) => sample.ratings.filter((row) => row.system === system)
    .map((row) => element("div", { class: "verdict" },
      element("b", {}, element("bdi", {}, row.judge),
        ` · ${row.rubric}: ${row.value === null ? ended(row) || "none" : rated(row.value)}`),
      row.explanation ? element("p", { dir: "auto" }, row.explanation) : null));
  const look = (wanted) => {
    place = (wanted + images.length) % images.length;
    const { alt, known, sample } = images[place];
    const small = known.source;
    large.onerror = () => { large.onerror = null; large.src = small; };
    // The image itself lies in the run; the copy in the report is there wherever that is not.
    large.src = data.originals && known.original ? `${data.originals}/${known.original}` : small;
    large.alt = alt;
    about.replaceChildren(
      element("p", { class: "small" }, `${place + 1} of ${images.length}`),
      element("h3", {}, element("bdi", {}, alt)),
      ...(sample ? [element("p", { class: "prompt", dir: "auto" }, sample.prompt),
        ...said(images[place])] : []));
    others.replaceChildren(...(images.length < 2 ? [] : images.map((one, index) => {
      const button = element("button",
        { type: "button", "aria-label": one.alt, "aria-current": index === place ? "true" : null },
        element("img", { src: one.known.source, alt: "" }));
      button.addEventListener("click", () => look(index));
      return button;
    })));
  };
  const open = (image) => {
    const id = image.closest("[data-sample]")?.dataset.sample;
    const sample = data.samples.find((one) => one.id === id);
    const source = image.getAttribute("src");
    images = sample ? imagesOf(sample) : [];
    place = images.findIndex((one) => one.known.source === source && one.alt === image.alt);
    if (place < 0) {
      images = [{ alt: image.alt, known: { source } }];
      place = 0;
    }
    look(place);
    viewer.showModal();
  };
  const reachable = (part) => {
    for (const image of part.querySelectorAll("img:not([tabindex])")) {
      image.tabIndex = 0;
      image.setAttribute("role", "button");
    }
  };
  const content = document.getElementById("content");
  const enlarged = (event) => {
    if (!event.target.matches("img")) return;
    event.preventDefault();
    open(event.target);
  };
  content.addEventListener("click", enlarged);
  content.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") enlarged(event);
  });
  viewer.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    look(place + by);
  });
  viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
  reachable(content);
  filter();

  // A link to a section opens it, and so does paper, until it is printed.
  const unfoldTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const fold = target && target.closest(".fold");
    if (!fold) return;
    fold.open = true;
    target.scrollIntoView();
  };
  // Also where the address has it already.
  document.addEventListener("click", (event) => {
    if (event.target.closest('a[href^="#"]')) setTimeout(unfoldTarget);
  });
  addEventListener("hashchange", unfoldTarget);
  unfoldTarget();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...content.querySelectorAll("details:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
})();
