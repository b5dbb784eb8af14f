/* What the page can do beyond being read: ask a person's questions, try prices, and show near-ties one at a time. */
"use strict";
const program = JSON.parse(document.getElementById("program").textContent);

function make(name, text, parent, attributes) {
  const element = document.createElement(name);
  if (text) element.textContent = text; // names are texts, never markup
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

function press(text, parent, action) {
  const button = make("button", text, parent, { type: "button" });
  button.onclick = action;
  return button;
}

/* --- the questionnaire: one question at a time, in the tree's order --- */

document.querySelectorAll(".tree[data-form]").forEach((tree, k) => {
  const { root, scales, ranges, caution } = program.trees[k];
  if (!root.question) return;

  // Every question or leaf with the element that shows it, and what leads to it.
  const leaves = [], asked = new Map();
  (function walk(node, element, path) {
    node.element = element;
    if (!node.question) { leaves.push({ node, path }); return; }
    if (!asked.has(node.feature)) asked.set(node.feature, []);
    asked.get(node.feature).push(node);
    const parts = [...element.children].filter((child) => child.matches("details, .leaf"));
    walk(node.yes, parts[0], [...path, [node, true]]);
    walk(node.no, parts[1], [...path, [node, false]]);
  })(root, tree.firstElementChild, []);

  function saysYes(node, value) {
    if (node.kind === "missing") return value === null;
    if (node.kind === "known") return value !== null;
    if (value === null) return node.unknown === "yes";
    if (node.kind === "group") return node.value.includes(value);
    return node.kind === "numeric" ? value <= node.value : value === node.value;
  }

  // The way down as far as answers lead: the nodes passed, the last of which is a leaf or the next question.
  function route(values) {
    const passed = [root];
    for (let node = root; node.question && values.has(node.feature); passed.push(node))
      node = saysYes(node, values.get(node.feature)) ? node.yes : node.no;
    return passed;
  }

  // What must change in one answer to come into a leaf, as [words, size]; null if nothing does, undefined if nothing can.
  // Of what a person was not asked nothing is known, so that all that the leaf wants is said.
  function change(feature, tests, value, known) {
    if (known && tests.every(([node, yes]) => saysYes(node, value) === yes)) return null;
    const numeric = tests.filter(([node]) => node.kind === "numeric");
    const candidates = numeric.length
      ? numeric.map(([node, yes]) => (yes ? node.value : node.value + Math.max(1e-9, Math.abs(node.value) * 1e-9)))
      : [...tests.filter(([node, yes]) => yes && (node.kind === "category" || node.kind === "group")).flatMap(([node]) => node.value), "another value"];
    const fits = candidates.filter((c) => tests.every(([node, yes]) => saysYes(node, c) === yes));
    if (!fits.length) return undefined;
    const size = (c) => (typeof c === "number" && value !== null ? Math.abs(c - value) / scales[feature] : 1);
    const best = fits.reduce((a, b) => (size(b) < size(a) ? b : a));
    const bound = tests.find(([node]) => node.kind === "numeric" && Math.abs(node.value - best) <= Math.abs(best) * 2e-9 + 2e-9);
    const bounds = (side) => numeric.filter(([, yes]) => yes === side).map(([node]) => node.value);
    const span = [["above", bounds(false), Math.max], ["at most", bounds(true), Math.min]].filter(([, found]) => found.length);
    const words = typeof best !== "number" ? `${feature} = ${best}`
      : known ? `${feature} ${bound && !bound[1] ? "above" : "at most"} ${bound[0].value}`
      : `${feature} ${span.map(([word, found, pick]) => `${word} ${pick(...found)}`).join(" and ")}`;
    return [words, size(best)];
  }

  function nearest(values, given) {
    let best = null;
    for (const { node, path } of leaves) {
      if (node.treatment === given) continue;
      const changes = [];
      let possible = true;
      for (const feature of asked.keys()) {
        const tests = path.filter(([step]) => step.feature === feature);
        const known = values.has(feature), value = known ? values.get(feature) : null;
        const found = tests.length ? change(feature, tests, value, known) : null;
        if (found === undefined) possible = false;
        if (found) changes.push(found);
      }
      const size = changes.reduce((sum, part) => sum + part[1], 0);
      if (possible && (!best || changes.length < best.changes.length || (changes.length === best.changes.length && size < best.size)))
        best = { treatment: node.treatment, changes, size };
    }
    return best;
  }

  // The treatments that a person may get below a node, whatever was not measured is.
  function reachable(node, values) {
    if (!node.question) return [node.treatment];
    const value = values.get(node.feature);
    const sides = value === null && node.kind !== "missing" && node.kind !== "known" ? [node.yes, node.no]
      : value === undefined ? [node.yes, node.no] : [saysYes(node, value) ? node.yes : node.no];
    return [...new Set(sides.flatMap((side) => reachable(side, values)))];
  }

  const tools = make("p", "", null, { class: "tools" });
  for (const [text, open] of [["Open all", true], ["Fold all", false]])
    press(text, tools, () => tree.querySelectorAll("details").forEach((part) => { part.open = open; }));
  tree.before(tools);

  const values = new Map();
  const form = make("form", "", null, { class: "route", "aria-label": "Which treatment for this person?" });
  make("strong", "Which treatment for this person?", form);
  const answers = make("ul", "", form), step = make("fieldset", "", form), output = make("output", "", form);

  function answer(feature, value) {
    values.set(feature, value);
    show(true);
  }

  function ask(node, focus) {
    const { feature } = node, nodes = asked.get(feature), range = ranges[feature];
    const named = feature.length > 80 ? feature.slice(0, 77) + "…" : feature;
    make("legend", `Question ${values.size + 1} of at most ${asked.size}`, step);
    const label = make("label", named, step);
    const numeric = nodes.some((n) => n.kind === "numeric" || n.kind === "known");
    const input = make(numeric ? "input" : "select", "", label, numeric ? { type: "number", step: "any" } : {});
    if (!numeric) {
      const known = [...nodes.filter((n) => n.value !== null).flatMap((n) => n.value), ...nodes.map((n) => n.otherwise).filter(Boolean)];
      for (const text of new Set(known)) make("option", text, input);
      if (!nodes.some((n) => n.otherwise)) make("option", "another value", input);
    }
    const hint = make("p", range ? `In the study nine of ten people have ${range[0]} to ${range[1]}.` : "", step, { class: "note" });
    const next = () => {
      if (input.value === "") { hint.textContent = "Type a number, or choose Not measured."; input.focus(); return; }
      answer(feature, numeric ? Number(input.value) : input.value);
    };
    press("Next", step, next);
    press("Not measured", step, () => answer(feature, null));
    form.onsubmit = (event) => { event.preventDefault(); next(); };
    if (focus) input.focus();
  }

  function conclude(leaf, passed) {
    make("strong", caution ? `This tree would give ${leaf.treatment}.` : `Give ${leaf.treatment}.`, output);
    if (caution) make("div", caution, output);
    for (const line of [`${leaf.rows} of the study are in this leaf.`, ...leaf.lines]) make("div", line, output);
    for (const node of passed) {
      if (!node.question || values.get(node.feature) !== null || node.kind === "missing" || node.kind === "known") continue;
      const [yes, no] = [node.yes, node.no].map((side) => reachable(side, values).join(" or "));
      make("div", `Not measured: ${node.feature}. If ${node.question}: ${yes}; if not: ${no}. The rule takes the answer ${node.answers[node.unknown === "yes" ? 0 : 1]}.`, output);
    }
    const far = [...values].filter(([name, value]) => typeof value === "number" && ranges[name] && (value < ranges[name][0] || value > ranges[name][1]));
    for (const [name] of far) make("div", `Few people of the study had such a value of ${name}.`, output);
    const other = nearest(values, leaf.treatment);
    if (other) make("div", `It would be ${other.treatment} with ${other.changes.map((part) => part[0]).join(" and ")}.`, output);
  }

  function show(focus) {
    const passed = route(values), last = passed[passed.length - 1];
    answers.replaceChildren(); step.replaceChildren(); output.replaceChildren();
    form.classList.toggle("begun", values.size > 0);
    tree.querySelectorAll(".on").forEach((part) => part.classList.remove("on"));
    for (const [name, value] of values) make("li", `${name}: ${value === null ? "not measured" : value}`, answers);
    if (values.size) passed.forEach((node) => { node.element.classList.add("on"); if (node.question) node.element.open = true; });
    if (last.question) ask(last, focus); else conclude(last, passed);
    if (!values.size) return;
    const back = press("Back", step, () => { values.delete([...values.keys()].pop()); show(true); });
    press("Start again", step, () => { values.clear(); show(true); });
    if (!last.question && focus) back.focus();
  }
  tree.after(form);
  show(false);
});

/* --- prices: values and intervals move linearly in them --- */

document.querySelectorAll(".prices").forEach((place, k) => {
  const data = program.prices[k], prices = data.arms.map(() => 0);
  const number = (value) => (data.digits > 0 ? value.toFixed(data.digits) : Math.round(value)).toString().replace("-", "−");
  const form = make("form", "", place, { "aria-label": "Prices of treatments" });
  form.onsubmit = (event) => event.preventDefault();
  const scroll = make("div", "", place, { class: "scroll", role: "region", tabindex: "0", "aria-label": "Values at these prices" });
  const table = make("table", "", scroll), note = make("p", "", place, { class: "note", role: "status" });
  make("caption", "Values at these prices, held out", table);
  const head = make("tr", "", make("thead", "", table)), level = `${100 * data.level}% interval`;
  for (const text of ["rule", "value", level, `${data.own} − rule`, level]) make("th", text, head, { scope: "col" });
  const body = make("tbody", "", table);

  function estimate(moments) {
    const weight = [1, ...prices.map((price) => data.sign * price)];
    const sum = (row) => row.reduce((total, x, j) => total + x * weight[j], 0);
    const value = sum(moments.mean), half = moments.t * Math.sqrt(Math.max(0, sum(moments.covariance.map(sum))));
    return [number(value), `[${number(value - half)}, ${number(value + half)}]`];
  }

  function show() {
    body.replaceChildren();
    for (const [rule, moments] of Object.entries(data.rules)) {
      const row = make("tr", "", body, rule === data.own ? { class: "strong" } : {});
      make("th", rule, row, { scope: "row" });
      const difference = data.differences[rule] ? estimate(data.differences[rule]) : ["", ""];
      for (const text of [...estimate(moments), ...difference]) make("td", text, row, { class: "number" });
    }
    note.textContent = prices.some((price) => price > 0) ? `The policy tree was learnt at another price (${data.learnt}); a search at these prices may find a better one.` : "";
  }

  const reset = () => form.querySelectorAll("input").forEach((slider) => { slider.value = 0; slider.oninput(); });
  data.arms.forEach((arm, j) => {
    const label = make("label", `Price of ${arm}${data.unit ? `, ${data.unit}` : ""}: `, form), said = make("output", "0", label);
    const list = make("datalist", "", form, { id: `marks-${k}-${j}` });
    const slider = make("input", "", label, { type: "range", min: 0, max: data.most, step: data.most / 200, value: 0, list: list.id });
    for (const [of, rule, price] of data.marks) {
      if (of !== arm || price > data.most) continue;
      make("option", "", list, { value: price, label: rule });
      press(`break-even with ${rule}: ${number(price)}`, form, () => { reset(); set(price); }); // marks are at no other price
    }
    function set(price) {
      prices[j] = price;
      slider.value = price;
      said.textContent = number(price);
      slider.setAttribute("aria-valuetext", number(price));
      show();
    }
    slider.oninput = () => set(Number(slider.value));
  });
  press("No prices", form, reset);
  show();
});

/* --- near-ties: the row that is chosen shows its tree --- */

document.querySelectorAll(".choices").forEach((place, k) => {
  const trees = [...place.querySelectorAll(".choice")];
  const rows = [...place.querySelectorAll("tbody tr")];
  const choose = (at) => trees.forEach((tree, j) => { tree.hidden = j !== at; tree.open = j === at; rows[j].classList.toggle("strong", j === at); });
  rows.forEach((row, j) => {
    const head = row.querySelector("th"), label = make("label", "");
    const input = make("input", "", label, { type: "radio", name: `choice-${k}` });
    label.append(...head.childNodes);
    head.append(label);
    input.checked = j === 0;
    input.onchange = () => choose(j);
  });
  choose(0);
});
