// An encounter as a graph in columns, context left of the visit. A half of a line is as wide and as dark as what the node at its end gives to the other.

/** More lines than this are neither seen nor quickly drawn; true edges are always drawn. */
const MOST_LINES = 1500;

/** Where the nodes stand, in this much width, and what is written in their boxes. */
function planOf(view, width) {
  const columns = [4, 0, 1, 2, 3].map(kind => ({ kind, nodes: view.nodes.flatMap((node, place) => node.kind === kind ? [place] : []) }))
    .filter(column => column.nodes.length);
  const longest = Math.max(4, ...columns.map(column => column.nodes.length));
  const narrow = width < 560;
  const [size, pad, head] = [narrow ? 10.5 : 11.5, narrow ? 5 : 8, 30];
  // A phone has room for labels or for slopes, not for both.
  const least = narrow ? 30 : 72;
  const gaps = Math.max(1, columns.length - 1);
  const visit = textWidth("visit", size) + 2 * pad + 2;
  // Where there is too little room the drawing is larger than its frame, which makes it smaller.
  const most = Math.max(48, (width - visit - gaps * least) / Math.max(1, columns.length - 1));
  for (const column of columns) {
    const labels = column.nodes.map(node => textWidth(labelOf(view, node).slice(0, 120), size) + 2 * pad + 2);
    const heading = textWidth(headingOf(column), 12) * 1.1;
    column.width = column.kind === 0 ? visit : Math.min(most, Math.max(44, heading, ...labels));
  }
  // Long names get two lines, unless there are so many codes that one has to do.
  const isTight = column => column.nodes.some(node => textWidth(labelOf(view, node).slice(0, 120), size) > column.width - 2 * pad);
  const lines = longest <= 30 && columns.some(isTight) ? 2 : 1;
  const pitch = lines === 2 ? 36 : longest > 40 ? 19 : longest > 24 ? 21 : 24;
  const height = head + longest * pitch;
  const used = columns.reduce((sum, column) => sum + column.width, 0);
  const gap = Math.min(Math.max(24, (width - used) / gaps), Math.max(150, Math.min(320, height * 0.35)));
  const place = new Array(view.nodes.length);
  let left = 0;
  for (const column of columns) {
    column.left = left;
    left += column.width + gap;
    const labels = labelsOf(view, column.nodes, size, column.width - 2 * pad, lines);
    column.nodes.forEach((node, at) => {
      place[node] = { column, y: head + (at + 0.5) * (height - head) / column.nodes.length, rows: labels[at] };
    });
  }
  // Where there are many lines, none may be so wide that it hides others.
  const widest = view.nodes.length > 60 ? 4 : 6;
  return { columns, place, size, pad, narrow, widest, box: pitch - 4, width: left - gap, height };
}

/** The lines that stand in the boxes of some nodes; what has different names is not written alike. */
function labelsOf(view, nodes, size, room, lines) {
  const names = nodes.map(node => labelOf(view, node));
  const rows = names.map(name => wrapped(name, size, room, lines));
  const written = rows.map(each => each.join(" "));
  const one = distinct(names, nodes.map(node => view.nodes[node].code), size, room);
  const isAlike = at => written.some((text, other) => text === written[at] && names[other] !== names[at]);
  return rows.map((own, at) => isAlike(at) ? [one[at]] : own);
}

const headingOf = column => column.kind === 0 ? "visit" : `${HEADINGS[column.kind]} (${column.nodes.length})`;
const labelOf = (view, node) => (node === view.hidden ? "? " : "") + titleOf(view.nodes[node].code, view.nodes[node].description);

/** The line between two nodes, and the half of it that begins at the first. */
function pathOf(plan, a, b) {
  const [from, to] = [plan.place[a], plan.place[b]];
  const inside = from.column === to.column;
  const onward = from.column.left < to.column.left;
  const x1 = inside || !onward ? from.column.left : from.column.left + from.column.width;
  const x2 = inside || onward ? to.column.left : to.column.left + to.column.width;
  const bend = inside ? x1 - Math.min(20 + 0.2 * Math.abs(to.y - from.y), 60, x1 || 20) : (x1 + x2) / 2;
  const [y1, y2] = [from.y, to.y];
  const f = values => values.map(value => value.toFixed(1)).join(" ");
  const middle = [(x1 + 6 * bend + x2) / 8, (y1 + y2) / 2];
  return {
    whole: `M${f([x1, y1])}C${f([bend, y1, bend, y2, x2, y2])}`,
    half: `M${f([x1, y1])}C${f([(x1 + bend) / 2, y1, (x1 + 3 * bend) / 4, (3 * y1 + y2) / 4, ...middle])}`,
    middle: `M${f(middle)}h0`,
  };
}

function lineOf(plan, link, strongest, weight = 1) {
  const portion = Math.min(1, link.strength / strongest);
  const look = link.mark === "missed" ? {} : {
    "stroke-width": (0.6 + (plan.widest - 0.6) * portion).toFixed(2),
    // Those of no true edge are many, and together must not hide the true ones.
    "stroke-opacity": Math.min(1, weight * (link.mark === "found" ? 0.3 + 0.6 * portion : 0.04 + 0.56 * portion ** 1.5)).toFixed(3),
  };
  return s(`path.link.${link.mark}`, { d: pathOf(plan, link.from, link.to)[plan.parts], ...look });
}

/**
 * Draws a layer of a view. `look(node)` is called when a node is pointed at or focused (null when it no longer is), `pick(node)` when
 * it is chosen. Gives the drawing with `least(portion)`, which hides weak lines, and `show(node)`, which fades all but a node's links.
 */
function graph(view, layer, width, { look, pick }) {
  const plan = { ...planOf(view, width), parts: layer?.kind === "attention" || layer?.kind === "prior" ? "half" : "whole" };
  const links = linksOf(view, layer);
  const strongest = strongestOf(layer, links);
  const dotsOf = some => some.filter(link => link.mark === "found" && (plan.parts === "whole" || link.from < link.to))
    .map(link => pathOf(plan, link.from, link.to).middle).join("");
  const [lines, own, tags] = [s("g.links"), s("g.own"), s("g.tags")];
  const boxes = view.nodes.map((node, place) => {
    const { column, y } = plan.place[place];
    const hidden = place === view.hidden;
    return s(`g.node.kind-${node.kind}${hidden ? ".hidden" : ""}`, {
      tabindex: place ? -1 : 0, role: "button", "data-node": place,
      "aria-label": `${place ? `${KINDS[node.kind]} ${whole(node.code, node.description)}` : "visit"}${hidden ? ", hidden from the model" : ""}`,
      pointerenter: event => { if (event.pointerType === "mouse") look(place); },
      pointerleave: event => { if (event.pointerType === "mouse") look(null); },
      focus: () => look(place), blur: () => look(null),
      click: () => pick(place), keydown: event => moved(event, place),
    },
    s("title", place ? whole(node.code, node.description) : "visit"),
    s("rect", { x: column.left + 0.5, y: y - plan.box / 2, width: column.width - 1, height: plan.box, rx: 3 }),
    s("text", { y: y + plan.size * (0.36 - 0.6 * (plan.place[place].rows.length - 1)), "font-size": plan.size },
      plan.place[place].rows.map((row, at) => s("tspan", { x: column.left + plan.pad, dy: at ? plan.size * 1.2 : 0 }, row))));
  });

  function moved(event, place) {
    const { column, y } = plan.place[place];
    const [row, at] = [column.nodes.indexOf(place), plan.columns.indexOf(column)];
    const nearest = beside => beside?.nodes.reduce((best, node) =>
      Math.abs(plan.place[node].y - y) < Math.abs(plan.place[best].y - y) ? node : best);
    const next = {
      ArrowUp: () => column.nodes[row - 1], ArrowDown: () => column.nodes[row + 1],
      ArrowLeft: () => nearest(plan.columns[at - 1]), ArrowRight: () => nearest(plan.columns[at + 1]),
      Home: () => column.nodes[0], End: () => column.nodes.at(-1),
      Enter: () => pick(place), " ": () => pick(place), Escape: () => pick(null),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const node = next();
    if (typeof node !== "number") return;
    boxes.forEach((box, other) => box.setAttribute("tabindex", other === node ? 0 : -1));
    boxes[node].focus();
  }

  /** Hides lines below a portion of the strongest; a true edge that is missed stays, since it is weak by definition. */
  function least(portion) {
    const strong = links.filter(link => link.mark === "missed" || link.strength >= portion * strongest);
    const others = strong.filter(link => link.mark === "other").slice(-MOST_LINES);
    const ordered = [...others, ...strong.filter(link => link.mark === "found"), ...strong.filter(link => link.mark === "missed")];
    lines.replaceChildren(...ordered.map(link => lineOf(plan, link, strongest)), s("path.true-dots", { d: dotsOf(strong) }));
    return { drawn: ordered.length, all: links.length };
  }

  function show(node, pinned) {
    svg.classList.toggle("focused", node !== null);
    const near = new Set([node]);
    own.replaceChildren();
    tags.replaceChildren();
    if (node !== null) {
      for (const link of links.filter(({ from, to }) => from === node || to === node)) {
        const other = link.from === node ? link.to : link.from;
        const { column, y } = plan.place[other];
        const before = column.left <= plan.place[node].column.left;
        const inside = column === plan.place[node].column;
        near.add(other);
        own.append(lineOf(plan, link, strongest, 1.8));
        // What it gives; what it gets stands in the table.
        if (layer && (link.from === node || plan.parts === "whole")) {
          const value = share(link.strength);
          const wide = textWidth(value, plan.size - 1) * 1.12 + 4;
          const left = inside || !before ? column.left - wide : column.left + column.width;
          // On paper of its own: the end of a line before a number would be taken for a minus.
          tags.append(s("rect", { x: left, y: y - 7, width: wide, height: 14 }),
            s("text", { x: left + wide / 2, y: y + 3.5, "text-anchor": "middle", "font-size": plan.size - 1 }, value));
        }
      }
      own.append(s("path.true-dots", { d: dotsOf(links.filter(({ from, to }) => from === node || to === node)) }));
    }
    boxes.forEach((box, place) => {
      box.classList.toggle("far", node !== null && !near.has(place));
      box.classList.toggle("near", node === place);
      box.setAttribute("aria-pressed", place === pinned);
    });
  }

  const svg = s("svg.graph", { viewBox: `-1 0 ${plan.width + 2} ${plan.height}`, width: plan.width + 2, height: plan.height, role: "group",
    "aria-label": `${view.nodes.length} nodes in columns, ${links.length} lines between them. Arrow keys go from node to node, Enter chooses one.` },
  lines, own,
  plan.columns.map((column, at) => {
    // The outer headings keep to the edges of the drawing, or a long one would be cut.
    const side = at === 0 ? 0 : at === plan.columns.length - 1 ? 1 : 0.5;
    const anchor = { 0: "start", 0.5: "middle", 1: "end" }[side];
    return s("text.heading", { x: column.left + side * column.width, y: 13, "text-anchor": anchor }, headingOf(column));
  }),
  boxes, tags);
  return { svg, least, show, strongest, widest: plan.widest };
}

/** What the lines mean. */
function graphLegend(view, layer, { strongest, widest }) {
  const sample = (name, look, dot) => h("li", h("span.swatch", s("svg", { width: 26, height: 10, "aria-hidden": "true" },
    s(`path.link.${name}`, { d: "M1 5H25", ...look }), dot && s("path.true-dots", { d: "M13 5h0" }))));
  const item = (swatch, text) => { swatch.append(text); return swatch; };
  const wide = { "stroke-width": 4, "stroke-opacity": 0.8 };
  const verb = layer?.kind === "probability" ? "probability" : "attention";
  const scale = (layer ? [0.25, 0.5, 1] : []).map(portion =>
    item(sample("scale", { "stroke-width": 0.6 + (widest - 0.6) * portion }), share(portion * strongest)));
  return h("ul.legend",
    view.edges && item(sample("found", wide, true), layer ? "true edge, found" : "true edge, as recorded"),
    view.edges && layer && item(sample("missed", {}), "true edge, missed"),
    layer && item(sample("other", { "stroke-width": 4, "stroke-opacity": 0.5 }), view.edges ? "other pairs" : verb === "attention" ? "what the node at this end gives to the other" : `${verb} between two nodes`),
    typeof view.hidden === "number" && h("li", h("span.swatch.hidden-box", "?"), "hidden from the model"),
    scale.length ? h("li.muted", `${verb}:`) : null, scale);
}
