"use strict";
// Elements, words and numbers. Codes and descriptions come from outside: they become text, never markup.

/** Makes elements: `h("p.muted", {title: "whole"}, "text", child)`. Functions among the attributes listen to events. */
const h = maker(name => document.createElement(name));
/** The same for SVG. */
const s = maker(name => document.createElementNS("http://www.w3.org/2000/svg", name));

function maker(create) {
  return (name, ...content) => {
    const [tag, ...classes] = name.split(".");
    const element = create(tag);
    if (classes.length) element.setAttribute("class", classes.join(" "));
    const attributes = Object.getPrototypeOf(content[0] ?? "") === Object.prototype ? content.shift() : {};
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(key, value);
      else if (typeof value === "boolean" && key.startsWith("aria-")) element.setAttribute(key, value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...content.flat(3).filter(child => child !== null && child !== undefined && child !== false));
    return element;
  };
}

/** Text without control characters and without those that turn the direction of what follows. */
function clean(text) {
  return String(text).replace(/\s/gu, " ").replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\ufffe\uffff]/gu, "");
}

/** What a code is called: its description, where there is one. No name is longer than a paragraph. */
const titleOf = (code, description) => {
  const name = clean(description || code);
  return name.length > 200 ? `${name.slice(0, 120)}…${name.slice(-60)}` : name;
};

/** Whether a code says something beside its description. */
const hasTitle = (code, description) => Boolean(description) && description !== code;

/** A code in a text of ours, by its name: isolated, since its letters may run from right to left; whole when the mouse rests on it. */
function named(code, description) {
  return h("bdi", { title: whole(code, description) }, titleOf(code, description));
}

/** The name, and the code in small beside it, as in lists and tables. */
function labelled(code, description) {
  return h("span.name", h("bdi", titleOf(code, description)), hasTitle(code, description) && [" ", h("bdi.code", clean(code))]);
}

/** The same for one that comes with its own keys. */
const labelledNode = node => labelled(node.code, node.description);

function whole(code, description) {
  return hasTitle(code, description) ? `${clean(description)} (${clean(code)})` : clean(code);
}

const pen = document.createElement("canvas").getContext("2d");
/** The font of the page at this size, for a canvas. Asked of the browser once, since each answer costs a layout. */
const fontOf = size => `${size}px ${fontOf.family ??= getComputedStyle(document.body).fontFamily}`;

function textWidth(text, size) {
  const font = fontOf(size);
  if (textWidth.font !== font) pen.font = textWidth.font = font;
  return pen.measureText(text).width;
}

/** Text in this much room. What is cut out is the middle: codes of one family often differ at their ends. */
function shortened(text, size, room) {
  const letters = Array.from(clean(text).slice(0, 400));
  if (textWidth(letters.join(""), size) <= room) return letters.join("");
  const cut = kept => letters.slice(0, Math.ceil(kept / 2)).join("").trimEnd() + "…" +
    letters.slice(letters.length - Math.floor(kept / 2)).join("").trimStart();
  let [fits, fails] = [0, letters.length];
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    if (textWidth(cut(middle), size) <= room) fits = middle; else fails = middle;
  }
  return cut(fits);
}

/** How many characters two texts have in common at their beginning. */
function common(a, b) {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}

/**
 * Texts in this much room, so that those that differ still differ: of texts that would be cut to the same, what they have in common at
 * their beginning makes room for what tells them apart. `also` are texts to add where even that does not help, such as codes.
 */
function distinct(texts, also, size, room) {
  const cut = texts.map(text => shortened(text, size, room));
  const alike = () => {
    const groups = new Map();
    cut.forEach((text, at) => groups.set(text, [...groups.get(text) ?? [], at]));
    return [...groups.values()].filter(group => new Set(group.map(at => texts[at])).size > 1);
  };
  for (const group of alike()) {
    const sorted = group.map(at => Array.from(clean(texts[at]).slice(0, 400))).sort((a, b) => a.join("") < b.join("") ? -1 : 1);
    const shared = common(sorted[0], sorted.at(-1));
    for (const at of group) {
      const letters = Array.from(clean(texts[at]).slice(0, 400));
      const head = letters.slice(0, Math.min(shared, 6)).join("").trimEnd() + "…";
      const tail = letters.slice(Math.max(0, shared - 2)).join("").trimStart();
      cut[at] = head + shortened(tail, size, Math.max(20, room - textWidth(head, size)));
    }
  }
  for (const group of alike()) {
    for (const at of group) {
      const own = ` ${shortened(also[at], size, room * 0.5)}`;
      cut[at] = shortened(texts[at], size, room - textWidth(own, size)) + own;
    }
  }
  return cut;
}

/** A text in at most so many lines of this width, broken between words; the last line is cut in its middle if it is too long. */
function wrapped(text, size, room, lines) {
  const pieces = clean(text).slice(0, 400).split(/(?<=[\s,/-])/u);
  const rows = [];
  while (pieces.length && rows.length < lines - 1) {
    let row = pieces[0], taken = 1;
    while (taken < pieces.length && textWidth((row + pieces[taken]).trimEnd(), size) <= room) row += pieces[taken++];
    if (textWidth(row.trimEnd(), size) > room) break;
    pieces.splice(0, taken);
    rows.push(row.trim());
  }
  const rest = pieces.join("").trim();
  return rest ? [...rows, shortened(rest, size, room)] : rows;
}

const DASH = "–";
const known = value => typeof value === "number" && Number.isFinite(value);
const figure = (value, digits = 4) => known(value) ? value.toFixed(digits) : DASH;
const integer = value => known(value) ? value.toLocaleString("en") : DASH;

/** A probability or a share of attention: short, but what is little is not nothing. */
function share(value) {
  if (!known(value)) return DASH;
  if (value === 0) return "0";
  if (value >= 0.0995) return value.toFixed(2);
  return value < 0.001 ? "< 0.001" : value.toFixed(3);
}

/** The sign stays on the line of its number. */
const PERCENT = "\u00a0%";

/** A probability for people, in percent: as many digits as tell it apart from never and always. */
function chance(value) {
  if (!known(value)) return DASH;
  const percent = 100 * value;
  if (percent === 0 || percent === 100) return `${percent}${PERCENT}`;
  if (percent < 0.001) return `<0.001${PERCENT}`;
  if (percent > 99.999) return `>99.999${PERCENT}`;
  if (percent < 0.1) return `${Number(percent.toPrecision(1))}${PERCENT}`;
  if (percent < 1) return `${percent.toFixed(2)}${PERCENT}`;
  // Near to certainty the distance from it counts.
  const missing = 100 - percent;
  return `${percent.toFixed(missing < 0.01 ? 3 : missing < 0.1 ? 2 : 1)}${PERCENT}`;
}

/** The ends of an interval of such shares. */
const chances = interval => interval?.every(known) ? `${chance(interval[0]).replace(PERCENT, "")} to ${chance(interval[1])}` : null;

/** A count of encounters; where it, or what is left beside it, is so small that someone could be recognised, the report does not tell it. */
function count(value, least) {
  return !known(value) && least > 0 ? "hidden" : integer(value);
}

/** The same of a count that is told unless it is small itself. */
function fewOr(value, least) {
  return !known(value) && least > 0 ? `<${least}` : integer(value);
}

function duration(seconds) {
  if (!known(seconds)) return DASH;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${seconds.toFixed(1)} s`;
}

/** A name of ours to be read. Names that a user gave, as those of labels, stay as they are. */
const words = name => clean(name).replace(/_/g, " ");
const taskName = task => {
  const [, kind, names] = /^(labels?):(.*)$/s.exec(task) ?? [];
  if (task === "next_diagnoses:new") return "next diagnoses, new ones alone";
  return kind ? `${kind} ${clean(names).replaceAll(",", ", ")}` : words(task);
};

/** Rows as a file for spreadsheets. They would compute a text that begins like a formula: an apostrophe prevents that. */
function csv(rows) {
  const cell = value => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = clean(value);
    return `"${(/^\s*[=+\-@]/.test(text) ? "'" + text : text).replace(/"/g, '""')}"`;
  };
  return rows.map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** A place whose content depends on its width; drawn again when that changes, or the colours of a canvas do. */
function sized(name, draw) {
  const place = h(name);
  place.classList.add("sized");
  let width = 0;
  place.redraw = () => { if (width > 0) place.replaceChildren(...[draw(width)].flat()); };
  new ResizeObserver(entries => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now === width) return;
    width = now;
    place.redraw();
  }).observe(place);
  return place;
}

/** A choice of one among few, as radio buttons: arrow keys move it. */
function choice(label, names, chosen, change) {
  const group = `choice-${choice.made = (choice.made ?? 0) + 1}`;
  const option = ([value, text]) => h("label",
    h("input", { type: "radio", name: group, value, checked: value === chosen, change: () => change(value) }),
    h("span", text));
  const field = h("fieldset.choice", h("legend", label), h("div", names.map(option)));
  field.choose = value => { for (const input of field.querySelectorAll("input")) input.checked = input.value === value; };
  return field;
}

/** A table. If it is wider than the page it scrolls in its frame, by keyboard too. Columns: {name, number, cell(row)}. */
function table(caption, columns, rows, attributes = {}) {
  const head = h("tr", columns.map(column => h(column.number ? "th.number" : "th", { scope: "col" }, column.name)));
  const line = row => row.group !== undefined
    ? h("tr.group", h("th", { colspan: columns.length, scope: "colgroup" }, row.group))
    : h("tr", { class: row.class ?? null }, columns.map((column, place) => place === 0
      ? h("th", { scope: "row" }, column.cell(row)) : h(column.number ? "td.number" : "td", column.cell(row))));
  return h("div.scroll", columns.length > 4 && { tabindex: 0, role: "region", "aria-label": caption },
    h("table", attributes, h("caption", caption), h("thead", head), h("tbody", rows.map(line))));
}

/** Paragraphs under a heading, as a part of a page. */
function part(name, title, ...content) {
  const id = `part-${part.made = (part.made ?? 0) + 1}`;
  return h(`section.${name}`, { "aria-labelledby": id }, h("h3", { id }, title), ...content);
}

/** A bar as long as a share, for cells of tables. */
function bar(value, mark = "") {
  const inner = h("span");
  inner.style.width = `${100 * Math.min(1, Math.max(0, known(value) ? value : 0))}%`;
  return h(`span.bar${mark && "." + mark}`, { "aria-hidden": "true" }, inner);
}
