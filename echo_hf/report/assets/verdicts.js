"use strict";
// Verdicts, a sample at a time: the index has the numbers that filters look at; the words of a
// sample are parsed when it is shown. Whatever posts, judges or people wrote becomes text of an
// element, and never markup.
(() => {
  const PAGE = 8;
  const index = JSON.parse(document.getElementById("index").textContent);
  const form = document.getElementById("filters");
  const list = document.getElementById("samples");
  const more = document.getElementById("more");
  const all = document.getElementById("all");
  const shown = document.getElementById("shown");
  const { systems, judges } = index;
  let matches = [];
  let next = 0;

  const element = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const systemName = (system) => element("bdi", {}, systems[system]);
  const rounded = (value) => String(Math.round(value * 100) / 100);
  const share = (part, whole) => `${part} of ${whole}`;

  // Verdicts on a pair: 1 for the left system, -1 for the right one, 0 for a tie, or null.
  const byRatings = (sample, judge, pair) => {
    const [left, right] = pair.map((system) => sample.ratings[judge][system]);
    if (left === null || right === null) return null;
    // As the board has it; numbers without a scale are ranked as they are.
    const width = index.exact[judge] ? 0 : 1e-6;
    return Math.abs(left - right) <= width ? 0 : Math.sign(left - right);
  };
  const choicesOf = (sample, judge, [left, right]) => sample.choices
    .filter((row) => row[0] === judge && ((row[1] === left && row[2] === right)
      || (row[1] === right && row[2] === left)))
    .map(([, first, , ...winners]) => {
      const verdicts = winners.map((winner) => {
        if (winner === null) return null;
        if (winner === "tie") return 0;
        return (winner === "a") === (first === left) ? 1 : -1;
      });
      return first === left ? verdicts : verdicts.reverse(); // the left one shown first, then last
    });
  const byChoices = (sample, judge, pair) => {
    const both = choicesOf(sample, judge, pair).filter((row) => !row.includes(null));
    if (!both.length) return null;
    return Math.sign(both.reduce((sum, [one, other]) => sum + (one === other ? one : 0), 0));
  };
  const isFlipped = (sample, judge, pair) => choicesOf(sample, judge, pair)
    .some(([first, last]) => first && last && first === -last);
  const ways = index.prefersChoices ? [byChoices, byRatings] : [byRatings, byChoices];
  const verdictOf = (sample, judge, pair) =>
    ways[0](sample, judge, pair) ?? ways[1](sample, judge, pair);
  const votes = (verdicts) => {
    const known = verdicts.filter((verdict) => verdict !== null);
    return known.length ? Math.sign(known.reduce((sum, verdict) => sum + verdict, 0)) : null;
  };
  // How many people prefer the left system, the right one, and neither; null where nobody ranked.
  const countPeople = (sample, [left, right]) => {
    const row = sample.people.find(([first, second]) =>
      (first === left && second === right) || (first === right && second === left));
    if (!row) return null;
    const [first, , ...counts] = row;
    return first === left ? counts : [counts[1], counts[0], counts[2]];
  };
  const byPeople = (sample, pair) => {
    const counts = countPeople(sample, pair);
    return counts && Math.sign(counts[0] - counts[1]);
  };

  const chosenJudges = () => (form.elements.judge.value === ""
    ? [...judges.keys()] : [Number(form.elements.judge.value)]);
  const kinds = {
    all: () => true,
    disagree: (sample, pair) => {
      const verdicts = chosenJudges().map((judge) => verdictOf(sample, judge, pair));
      const others = [...judges.keys()].map((judge) => verdictOf(sample, judge, pair));
      return verdicts.some((verdict) => verdict && others.includes(-verdict));
    },
    ways: (sample, pair) => chosenJudges().some((judge) => {
      const [rated, chosen] = [byRatings, byChoices].map((way) => way(sample, judge, pair));
      return rated !== null && chosen !== null && rated !== chosen;
    }),
    flips: (sample, pair) => chosenJudges().some((judge) => isFlipped(sample, judge, pair)),
    people: (sample, pair) => byPeople(sample, pair) !== null,
    against: (sample, pair) => {
      const people = byPeople(sample, pair);
      const vote = votes(chosenJudges().map((judge) => verdictOf(sample, judge, pair)));
      return Boolean(people && vote && people !== vote);
    },
    check: (sample, pair, check) =>
      sample.failed.some(([name, system]) => name === check && pair.includes(system)),
  };
  const pairsOf = () => {
    const left = Number(form.elements.left.value);
    const { value } = form.elements.right;
    const rights = value === "" ? [...systems.keys()] : [Number(value)];
    return rights.filter((right) => right !== left).map((right) => [left, right]);
  };
  const findPair = (sample) => {
    const { split, show, task, text } = form.elements;
    if (split.value && sample.split !== split.value) return null;
    if (task.value && sample.task !== task.value) return null;
    const words = `${sample.id}\n${sample.prompt}`.toLowerCase();
    if (!text.value.toLowerCase().split(/\s+/).every((word) => words.includes(word))) return null;
    const mark = show.value.indexOf(":");
    const kind = mark < 0 ? show.value : show.value.slice(0, mark);
    const check = mark < 0 ? null : show.value.slice(mark + 1);
    return pairsOf().find((pair) => kinds[kind](sample, pair, check)) ?? null;
  };

  const picture = (known, alt) => (known
    ? element("img", { src: known.source, width: known.width, height: known.height, alt,
      loading: "lazy", decoding: "async" }) : null);
  const figure = (node, ...caption) =>
    element("figure", {}, node, element("figcaption", {}, ...caption));
  const missing = (row) => element("div", { class: "missing" },
    element("b", {}, row ? row.outcome : "not tried"),
    row && row.reason ? element("span", {}, row.reason) : null);
  const output = (sample, system) => {
    const row = sample.outputs[system];
    return (row && picture(row.image, `output of ${systems[system]}`)) || missing(row);
  };

  // One image over another; the slider says how much of the upper one is seen.
  const overlay = (layers) => {
    const [under, over] = [element("img", { class: "under" }), element("img", { class: "over" })];
    const box = element("div", { class: "overlap" }, under, over);
    const choose = (label, chosen) => element("label", {}, label, element("select", {},
      ...layers.map(({ title }, place) => element("option",
        { value: place, selected: place === chosen ? "" : null }, title))));
    const fields = [choose("Left of the slider", layers.length - 2),
      choose("Right of it", layers.length - 1)];
    const slider = element("input", { type: "range", min: 0, max: 100, value: 50,
      "aria-label": "how much of the left image is seen" });
    const draw = () => {
      const [left, right] = fields.map((field) => layers[field.lastChild.value]);
      for (const [node, layer] of [[over, left], [under, right]]) {
        node.src = layer.known.source;
        node.alt = layer.title;
      }
      over.style.clipPath = `inset(0 ${100 - slider.value}% 0 0)`;
    };
    slider.addEventListener("input", draw);
    for (const field of fields) field.addEventListener("change", draw);
    draw();
    return element("div", { class: "overlay-box" }, element("div", { class: "filters" }, ...fields),
      box, slider);
  };
  const folded = (title, make) => {
    const box = element("details", {}, element("summary", {}, title));
    box.addEventListener("toggle", () => { if (box.childNodes.length < 2) box.append(make()); });
    return box;
  };

  const winner = (verdict, [left, right]) => {
    if (verdict === null) return "–";
    return verdict === 0 ? "tie" : systemName(verdict > 0 ? left : right);
  };
  const reasons = (sample, judge, [left, right]) => {
    const name = judges[judge];
    const rated = [left, right].flatMap((system) => sample.ratings
      .filter((row) => row.judge === name && row.system === system && row.rubric === "overall")
      .map((row) => [[systemName(system), `: ${row.value === null ? row.outcome
        : rounded(row.value)}`], row.explanation]));
    const pair = [systems[left], systems[right]];
    const chosen = sample.choices
      .filter((row) => row.judge === name && pair.includes(row.system_a)
        && pair.includes(row.system_b))
      .map((row) => {
        const first = row.order === "ab" ? row.system_a : row.system_b;
        const chose = { a: row.system_a, b: row.system_b, tie: "a tie" }[row.winner];
        return [[element("bdi", {}, first), " shown first: ",
          element("bdi", {}, chose ?? row.outcome ?? "none")], row.explanation];
      });
    return [...rated, ...chosen].map(([head, text]) => element("div", { class: "verdict" },
      element("b", {}, ...head), text ? element("p", { dir: "auto" }, text) : null));
  };
  const line = (sample, judge, pair) => {
    const orders = choicesOf(sample, judge, pair);
    const flag = isFlipped(sample, judge, pair)
      ? element("span", { class: "flag" }, "the order decided") : null;
    const ratings = pair.map((system) => {
      const value = sample.ratings[judge][system];
      return element("td", { class: "number" }, value === null ? "–" : rounded(value));
    });
    const both = orders.map((row) => element("span", {}, ...row.flatMap((verdict, order) =>
      [order ? " / " : "", winner(verdict, pair)])));
    return element("tr", {},
      element("th", { scope: "row", class: "name" }, element("bdi", {}, judges[judge])), ...ratings,
      element("td", {}, winner(byRatings(sample, judge, pair), pair)),
      element("td", {}, ...(both.length ? both : ["–"]), " ", flag));
  };
  const table = (sample, pair) => {
    const heads = ["Judge", systems[pair[0]], systems[pair[1]], "By ratings",
      "By choices: left first / last"];
    const rows = chosenJudges().map((judge) => line(sample, judge, pair));
    return element("div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "verdicts of judges" },
      element("table", { class: "verdicts" },
        element("caption", { class: "unseen" }, "Verdicts of judges"),
        element("thead", {}, element("tr", {},
          ...heads.map((head, place) => element("th",
            { scope: "col", class: place === 1 || place === 2 ? "number" : null },
            element("bdi", {}, head))))),
        element("tbody", {}, ...rows)));
  };
  const summary = (sample, pair) => {
    const verdicts = [...judges.keys()].map((judge) => verdictOf(sample, judge, pair));
    const vote = votes(verdicts);
    const known = verdicts.filter((verdict) => verdict !== null);
    const parts = [element("span", {}, "Judges: ", winner(vote, pair),
      vote ? `, ${share(known.filter((verdict) => verdict === vote).length, known.length)}` : "")];
    const people = countPeople(sample, pair);
    const ranked = byPeople(sample, pair);
    if (people !== null) {
      const alike = people[{ 1: 0, "-1": 1, 0: 2 }[ranked]];
      parts.push(element("span", {}, "People: ", winner(ranked, pair),
        ranked ? `, ${share(alike, people[0] + people[1] + people[2])}` : ""));
      if (ranked && vote && ranked !== vote) {
        parts.push(element("span", { class: "flag" }, "judges against people"));
      }
    }
    for (const [check, system] of sample.failed) {
      if (pair.includes(system)) {
        parts.push(element("span", { class: "flag" }, systemName(system), " fails: ",
          index.checks[check]));
      }
    }
    return element("p", { class: "meta" }, ...parts);
  };
  const pick = (label, chosen, change) => {
    const field = element("select", { "aria-label": label }, ...systems.map((system, place) =>
      element("option", { value: place, selected: place === chosen ? "" : null }, system)));
    field.addEventListener("change", () => change(Number(field.value)));
    return field;
  };

  const article = (number, first) => {
    const sample = index.samples[number];
    const words = JSON.parse(document.getElementById(`sample-${number}`).textContent);
    const body = element("div");
    const draw = (pair) => {
      const outputs = pair.map((system, side) => {
        const change = (wanted) => {
          const both = [...pair];
          if (wanted === both[1 - side]) both[1 - side] = both[side];
          both[side] = wanted;
          draw(both);
        };
        return figure(output(words, system), pick(side ? "right system" : "left system", system,
          change));
      });
      const inputs = words.inputs.map((known, place, rows) => {
        const title = rows.length > 1 ? `input ${place + 1}` : "input";
        return { known, title };
      });
      const layers = [...inputs, ...pair.map((system) => ({
        known: words.outputs[system] && words.outputs[system].image, title: systems[system] }))]
        .filter(({ known }) => known);
      body.replaceChildren(
        element("div", { class: "beside-pair" },
          ...inputs.map(({ known, title }) =>
            element("figure", { class: "given" },
              picture(known, title) || missing({ outcome: "cannot be shown" }),
              element("figcaption", {}, title))),
          ...outputs),
        layers.length > 1 ? folded("Lay one over another", () => overlay(layers)) : "",
        summary(sample, pair), table(sample, pair),
        ...chosenJudges().map((judge) => folded(`${judges[judge]} in words`,
          () => element("div", { class: "in-words" }, ...reasons(words, judge, pair)))));
    };
    draw(first);
    const link = element("a", { href: `#${encodeURIComponent(sample.id)}` }, "link");
    link.setAttribute("aria-label", `link to sample ${sample.id}`);
    return element("article", { class: "sample", "data-sample": sample.id },
      element("h3", { class: "prompt clamped", dir: "auto" }, words.prompt),
      element("p", { class: "meta" }, element("span", {}, index.names[sample.split]),
        words.task ? element("span", {}, words.task) : null, element("span", {}, sample.id), link),
      body);
  };

  const grow = () => {
    const rows = matches.slice(next, next + PAGE);
    next += rows.length;
    list.append(...rows.map(([number, pair]) => article(number, pair)));
    more.hidden = next >= matches.length;
  };
  const linked = () => {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  };
  const filter = () => {
    const only = index.samples.findIndex((sample) => sample.id === linked());
    all.hidden = only < 0;
    matches = only < 0
      ? [...index.samples.entries()].map(([number, sample]) => [number, findPair(sample)])
      : [[only, findPair(index.samples[only]) || pairsOf()[0]]];
    matches = matches.filter(([, pair]) => pair);
    next = 0;
    list.replaceChildren();
    shown.textContent = `${matches.length.toLocaleString("en")} of `
      + `${index.samples.length.toLocaleString("en")} samples`;
    grow();
  };
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (linked()) history.replaceState(null, "", " ");
      filter();
    }, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  all.addEventListener("click", () => {
    history.replaceState(null, "", location.pathname);
    filter();
  });
  more.addEventListener("click", grow);
  // Further samples come as the reader nears the end of those that are there.
  new IntersectionObserver((seen) => {
    if (seen.some((entry) => entry.isIntersecting) && !more.hidden) grow();
  }, { rootMargin: "1200px" }).observe(more);
  window.addEventListener("hashchange", filter);
  filter();
})();
