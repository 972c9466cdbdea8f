// Putting an encounter together from the codes that a run knows: search, chips, values for what has buckets.

/** A code of a bucket of values: `K//2-of-5` of a lab, `bmi=2-of-5` of the context. */
const BUCKET = { 3: /^(.*)\/\/\d+-of-\d+$/su, 4: /^(.*)=\d+-of-\d+$/su };

/** What can be picked: the codes of a run, those of buckets of one code together. */
function choicesOf(run) {
  const made = new Map();
  run.codes.code.forEach((code, index) => {
    const [kind, description] = [run.codes.kind[index], run.codes.description[index]];
    const base = BUCKET[kind]?.exec(code)?.[1];
    const key = `${kind} ${base ?? code}`;
    const known = made.get(key) ?? { kind, code: base ?? code, description: null, valued: false, plain: false, buckets: [], count: 0 };
    if (base === undefined) Object.assign(known, { plain: true, description });
    else {
      // "Potassium, over 3 to 5": what comes before the bounds is the name.
      const parts = /^(.*), (up to .*|over .*)$/su.exec(description ?? "");
      known.valued = true;
      known.description ??= parts && parts[1] !== known.code ? parts[1] : null;
      known.buckets.push(parts?.[2] ?? code);
    }
    known.count += run.codes.count[index] ?? 0;
    made.set(key, known);
  });
  return [...made.values()];
}

/** Those whose name or code holds all words of a text: what begins with it first, then what is frequent. */
function found(choices, text, kind) {
  const wanted = text.toLowerCase().split(/\s+/u).filter(Boolean);
  const names = each => `${each.description ?? ""} ${each.code}`.toLowerCase();
  const begins = each => Number([each.description, each.code].some(name => name?.toLowerCase().startsWith(wanted[0] ?? "")));
  return choices.filter(each => (kind === 0 || each.kind === kind) && wanted.every(word => names(each).includes(word)))
    .sort((a, b) => begins(b) - begins(a) || b.count - a.count);
}

/** A field that searches the codes of a run, and what was chosen of them. `changed` hears the encounter as the server wants it. */
function codePicker(run, begin, changed, label = "Add a code") {
  const choices = choicesOf(run);
  const MOST = 12;
  let chosen = [], kind = 0, options = [], at = -1;
  const id = `picker-${codePicker.made = (codePicker.made ?? 0) + 1}`;
  const field = h("input", { type: "search", role: "combobox", placeholder: "name or code", autocomplete: "off", "aria-label": label, "aria-expanded": false,
    "aria-controls": `${id}-list`, "aria-autocomplete": "list", input: () => suggest(), focus: () => suggest(), keydown: moved,
    blur: () => close() });
  const list = h("ul.options", { id: `${id}-list`, role: "listbox", "aria-label": "Codes", hidden: true });
  const kindsHere = IN_ORDER.filter(each => each && choices.some(choice => choice.kind === each));
  const kinds = choice("Kind", [["0", "all"], ...kindsHere.map(each => [String(each), HEADINGS[each]])], "0", value => { kind = Number(value); suggest(); });
  const chips = h("div.chips");
  const said = h("p.muted", { role: "status" });

  function suggest() {
    const all = found(choices, field.value.trim(), kind).filter(each => !chosen.some(own => own.of === each));
    options = all.slice(0, MOST);
    at = -1;
    list.replaceChildren(...options.map((each, place) => h("li", { role: "option", id: `${id}-${place}`, "aria-selected": false,
      pointerdown: event => { event.preventDefault(); add(each); } },
    labelled(each.code, each.description), h("span.kind", `${KINDS[each.kind]}${each.valued ? ", with a value" : ""}`))),
    ...all.length > MOST ? [h("li.muted", { role: "presentation" }, `and ${integer(all.length - MOST)} more: type to narrow them down`)] : [],
    ...all.length ? [] : [h("li.muted", { role: "presentation" }, "The model knows no such code.")]);
    list.hidden = false;
    field.setAttribute("aria-expanded", true);
    field.removeAttribute("aria-activedescendant");
  }

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", false);
  }

  function moved(event) {
    if (event.key === "Escape" && !list.hidden) {
      // The browser would empty the field, and the list would open again.
      event.preventDefault();
      close();
      return;
    }
    if (event.key === "Enter") {
      event.preventDefault();
      if (!list.hidden && options.length) add(options[Math.max(0, at)]);
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (list.hidden) suggest();
    at = Math.min(options.length - 1, Math.max(0, at + step));
    [...list.querySelectorAll("[role=option]")].forEach((option, place) => option.setAttribute("aria-selected", place === at));
    field.setAttribute("aria-activedescendant", `${id}-${at}`);
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  function add(of, value = "") {
    chosen.push({ of, value });
    field.value = "";
    close();
    draw();
    said.textContent = `${titleOf(of.code, of.description)} added.`;
    if (of.valued && value === "") chips.querySelector(`[data-at="${chosen.length - 1}"] input`)?.focus();
    else field.focus();
  }

  function remove(own) {
    chosen = chosen.filter(each => each !== own);
    draw();
    said.textContent = `${titleOf(own.of.code, own.of.description)} removed.`;
    field.focus();
  }

  /** The chips, by kind, each with a button that removes it. */
  function draw() {
    const chip = own => h("li.chip", { "data-at": chosen.indexOf(own) }, labelled(own.of.code, own.of.description),
      own.of.valued && h("input.number-field", { type: "number", step: "any", value: own.value, placeholder: own.of.plain ? "no value" : "value",
        "aria-label": `Value of ${titleOf(own.of.code, own.of.description)}`, title: own.of.buckets.map(clean).join("; "),
        input: event => { own.value = event.target.value; changed(encounter()); },
        keydown: event => { if (event.key === "Enter") { event.preventDefault(); field.focus(); } } }),
      h("button.remove", { type: "button", "aria-label": `Remove ${titleOf(own.of.code, own.of.description)}`, click: () => remove(own) }, "×"));
    const lists = kindsHere.map(each => [each, chosen.filter(own => own.of.kind === each)]).filter(([, own]) => own.length);
    chips.replaceChildren(...lists.length ? lists.map(([each, own]) => h("div", h("h4", HEADINGS[each]), h("ul.chip-list", own.map(chip))))
      : [h("p.muted", "No code is chosen yet. Search for a diagnosis, a treatment or a lab by its name.")]);
    changed(encounter());
  }

  /** The encounter as the server reads it. */
  function encounter() {
    const entries = kindsHere.map(each => [KINDS[each], chosen.filter(own => own.of.kind === each).map(({ of, value }) =>
      of.valued && value.trim() !== "" && Number.isFinite(Number(value)) ? { code: of.code, value: Number(value) } : of.code)]);
    return Object.fromEntries(entries.filter(([, codes]) => codes.length));
  }

  /** What lacks a value without which it is no code of the run. */
  const incomplete = () => chosen.filter(({ of, value }) => of.valued && !of.plain && value.trim() === "").map(({ of }) => of);

  function clear() {
    chosen = [];
    draw();
    field.focus();
  }

  for (const index of begin) {
    const [code, own] = [run.codes.code[index], run.codes.kind[index]];
    const of = choices.find(each => each.kind === own && each.code === code);
    if (of) chosen.push({ of, value: "" });
  }
  draw();
  const root = h("div.picker", kinds, h("div.combobox", field, list), chips, said);
  return { root, encounter, incomplete, clear };
}
