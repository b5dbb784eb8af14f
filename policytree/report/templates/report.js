/* What the page can do beyond being read: fold the tree, lead a person through it, and say what would change the answer. */
"use strict";
const programs = JSON.parse(document.getElementById("program").textContent);
document.querySelectorAll(".tree[data-form]").forEach((tree, k) => {
  const program = programs[k];
  if (!program.root.question) return;

  function make(name, text, parent) {
    const element = document.createElement(name);
    if (text) element.textContent = text; // names are texts, never markup
    if (parent) parent.append(element);
    return element;
  }

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
  })(program.root, tree.firstElementChild, []);

  function saysYes(node, value) {
    if (node.kind === "missing") return value === null;
    if (node.kind === "known") return value !== null;
    if (value === null) return node.unknown === "yes";
    if (node.kind === "group") return node.value.includes(value);
    return node.kind === "numeric" ? value <= node.value : value === node.value;
  }

  function route(values) {
    let node = program.root;
    const passed = [node];
    while (node.question) {
      node = saysYes(node, values.get(node.feature)) ? node.yes : node.no;
      passed.push(node);
    }
    return passed;
  }

  // What must change in one answer to come into a leaf, as [words, size]; null if nothing does, undefined if nothing can.
  function change(feature, tests, value) {
    if (tests.every(([node, yes]) => saysYes(node, value) === yes)) return null;
    const scale = program.scales[feature];
    const candidates = tests.some(([node]) => node.kind === "numeric")
      ? tests.filter(([node]) => node.kind === "numeric")
          .map(([node, yes]) => (yes ? node.value : node.value + Math.max(1e-9, Math.abs(node.value) * 1e-9)))
      : [...tests.filter(([node, yes]) => yes && (node.kind === "category" || node.kind === "group")).flatMap(([node]) => node.value), "another value"];
    const fits = candidates.filter((c) => tests.every(([node, yes]) => saysYes(node, c) === yes));
    if (!fits.length) return undefined;
    const size = (c) => (typeof c === "number" && value !== null ? Math.abs(c - value) / scale : 1);
    const best = fits.reduce((a, b) => (size(b) < size(a) ? b : a));
    const bound = tests.find(([node]) => node.kind === "numeric" && Math.abs(node.value - best) <= Math.abs(best) * 2e-9 + 2e-9);
    const words = typeof best === "number" ? `${feature} ${bound && !bound[1] ? "above" : "at most"} ${bound[0].value}` : `${feature} = ${best}`;
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
        const found = tests.length ? change(feature, tests, values.get(feature)) : null;
        if (found === undefined) possible = false;
        if (found) changes.push(found);
      }
      const size = changes.reduce((sum, part) => sum + part[1], 0);
      if (possible && (!best || changes.length < best.changes.length || (changes.length === best.changes.length && size < best.size)))
        best = { treatment: node.treatment, changes, size };
    }
    return best;
  }

  const tools = make("p");
  tools.className = "tools";
  for (const [text, open] of [["Open all", true], ["Fold all", false]]) {
    const button = make("button", text, tools);
    button.type = "button";
    button.onclick = () => tree.querySelectorAll("details").forEach((part) => { part.open = open; });
  }
  tree.before(tools);

  const form = make("form");
  form.className = "route";
  make("strong", "Which treatment for this person?", form);
  const inputs = new Map();
  for (const [feature, nodes] of asked) {
    const label = make("label", feature.length > 80 ? feature.slice(0, 77) + "…" : feature, form);
    const numeric = nodes.some((node) => node.kind === "numeric" || node.kind === "known");
    const input = make(numeric ? "input" : "select", "", label);
    if (numeric) { input.type = "number"; input.step = "any"; input.placeholder = "not known"; }
    else {
      for (const text of ["not known", ...new Set(nodes.filter((n) => n.value !== null).flatMap((n) => n.value)), "another value"])
        make("option", text, input);
    }
    inputs.set(feature, input);
  }
  const output = make("output", "", form);
  form.onsubmit = (event) => event.preventDefault();
  form.oninput = () => {
    const values = new Map();
    for (const [feature, input] of inputs) {
      const unknown = input.tagName === "SELECT" ? input.selectedIndex === 0 : input.value === "";
      values.set(feature, unknown ? null : input.type === "number" ? Number(input.value) : input.value);
    }
    const passed = route(values), leaf = passed[passed.length - 1];
    tree.querySelectorAll(".on").forEach((part) => part.classList.remove("on"));
    if ([...values.values()].every((value) => value === null)) { output.textContent = "Fill in what is known."; return; }
    passed.forEach((node) => { node.element.classList.add("on"); if (node.question) node.element.open = true; });
    const other = nearest(values, leaf.treatment);
    output.textContent = `Give ${leaf.treatment}.` + (other ? ` It would be ${other.treatment} with ${other.changes.map((part) => part[0]).join(" and ")}.` : "");
  };
  tree.after(form);
  form.oninput();
});
