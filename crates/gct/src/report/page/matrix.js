// The matrix of a layer as a heat map, and what one node attends to as bars.

/** A colour of the style sheet as three numbers. */
function rgb(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
}

/** Draws the matrix; `look({from, to} or null)` hears which cell is pointed at, `pick(node)` which row was chosen. */
function heatMap(view, layer, width, { look, pick }) {
  const n = view.nodes.length;
  const labels = Math.max(...view.nodes.map((_, node) => textWidth(labelOf(view, node).slice(0, 60), 10)));
  const room = Math.min(labels, 150, width * 0.2);
  const roomy = Math.floor((width - room - 12) / n) >= 11;
  const margin = roomy ? Math.ceil(room) + 10 : 22;
  // Whole cells where they are large; where they are small, any size that fills the room.
  const cell = roomy ? Math.min(28, Math.floor((width - margin - 2) / n)) : Math.min(10, (width - margin - 2) / n);
  const side = margin + cell * n + 2;
  const scale = window.devicePixelRatio || 1;
  const canvas = h("canvas", { width: Math.round(side * scale), height: Math.round(side * scale), tabindex: 0, role: "application",
    "aria-roledescription": "heat map", "aria-label": `${n} by ${n} cells: what each row gives to each column. Arrow keys go from cell to cell.` });
  canvas.style.width = `${side}px`;
  const ink = canvas.getContext("2d");
  const [paper, deep, truth, text, pale] = ["--heat-0", "--heat-1", "--truth", "--ink", "--pale"].map(rgb);
  const css = colour => `rgb(${colour.join(",")})`;
  const top = layer.kind === "probability" ? 1 : layer.matrix.reduce((most, value) => Math.max(most, value || 0), 0) || 1;
  const names = roomy ? distinct(view.nodes.map((_, node) => labelOf(view, node)), view.nodes.map(node => node.code), 10, margin - 10) : [];
  let at = null;

  // The root shows what is little: most cells of a large encounter are.
  const shade = value => css(paper.map((from, c) => Math.round(from + (deep[c] - from) * Math.sqrt(Math.min(1, (value || 0) / top)))));

  function paint() {
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, side, side);
    ink.font = fontOf(10);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        ink.fillStyle = shade(layer.matrix[i * n + j]);
        // Cells overlap by a hair, or seams would show between those of broken size.
        ink.fillRect(margin + j * cell, margin + i * cell, cell + 0.3, cell + 0.3);
      }
    }
    ink.strokeStyle = css(truth);
    const edge = Math.min(1.5, cell * 0.2);
    ink.lineWidth = edge;
    for (const [a, b] of view.edges ?? []) {
      for (const [i, j] of [[a, b], [b, a]]) {
        const inset = edge / 2 + (cell >= 8 ? 0.7 : 0);
        ink.strokeRect(margin + j * cell + inset, margin + i * cell + inset, cell - 2 * inset, cell - 2 * inset);
      }
    }
    for (let i = 0; i < n; i++) {
      const first = i === 0 || view.nodes[i].kind !== view.nodes[i - 1].kind;
      const middle = margin + (i + 0.5) * cell;
      if (first) {
        ink.fillStyle = css(pale);
        ink.fillRect(margin - 8, margin + i * cell, side - margin + 8, 0.7);
        ink.fillRect(margin + i * cell, margin - 8, 0.7, side - margin + 8);
      }
      ink.fillStyle = css(text);
      if (roomy) {
        const label = names[i];
        written(label, margin - 6, middle + 3.5, 0, "right");
        written(label, middle + 3.5, margin - 6, -Math.PI / 2, "left");
      } else if (first) {
        const run = view.nodes.filter(node => node.kind === view.nodes[i].kind).length * cell;
        const label = HEADINGS[view.nodes[i].kind];
        if (textWidth(label, 10) < run) {
          written(label, margin + i * cell + run / 2, margin - 10, 0, "center");
          written(label, margin - 10, margin + i * cell + run / 2, -Math.PI / 2, "center");
        }
      }
    }
    if (at) {
      ink.strokeStyle = css(text);
      ink.lineWidth = 2;
      ink.strokeRect(margin + at.to * cell, margin + at.from * cell, cell, cell);
      ink.lineWidth = 0.6;
      ink.strokeRect(margin, margin + at.from * cell, cell * n, cell);
      ink.strokeRect(margin + at.to * cell, margin, cell, cell * n);
    }
  }

  function written(label, x, y, angle, align) {
    ink.save();
    ink.translate(x, y);
    ink.rotate(angle);
    ink.textAlign = align;
    ink.fillText(label, 0, 0);
    ink.restore();
  }

  function point(cellAt) {
    at = cellAt;
    paint();
    look(at);
  }

  function cellUnder(event) {
    const box = canvas.getBoundingClientRect();
    const unit = side / box.width;
    const [j, i] = [(event.clientX - box.left) * unit, (event.clientY - box.top) * unit].map(p => Math.floor((p - margin) / cell));
    return i >= 0 && j >= 0 && i < n && j < n ? { from: i, to: j } : null;
  }

  canvas.addEventListener("pointermove", event => point(cellUnder(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("click", event => { const under = cellUnder(event); point(under); if (under) pick(under.from); });
  canvas.addEventListener("focus", () => { if (!at) point({ from: 0, to: Math.min(1, n - 1) }); });
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("keydown", event => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (event.key === "Enter" && at) pick(at.from);
    if (!down && !right) return;
    event.preventDefault();
    const inside = place => Math.min(n - 1, Math.max(0, place));
    point({ from: inside((at?.from ?? 0) + down), to: inside((at?.to ?? 0) + right) });
  });
  paint();
  const ramp = h("canvas", { width: 120, height: 10, "aria-hidden": "true" });
  const rampInk = ramp.getContext("2d");
  for (let x = 0; x < 120; x++) {
    rampInk.fillStyle = shade((x / 119) * top);
    rampInk.fillRect(x, 0, 1, 10);
  }
  return [canvas, h("ul.legend", h("li", "0", ramp, share(top)), view.edges && h("li", h("span.swatch.true-cell"), "true edge"),
    h("li.muted", "A row is a node that gives; a column is a node that gets."))];
}

/** What a node attends to, a column of bars for each layer: the paper's Figure 4, turned so that labels stay readable. */
function bars(view, node) {
  const n = view.nodes.length;
  const layers = view.layers;
  const given = (layer, other) => layer.matrix[node * n + other];
  const isTrue = other => (view.edges ?? []).some(([a, b]) => (a === node && b === other) || (b === node && a === other));
  const rows = view.nodes.map((_, other) => other).filter(other => isTrue(other) || layers.some(layer => given(layer, other) > 0));
  const tops = layers.map(layer => layer.kind === "probability" ? 1 : Math.max(...rows.map(other => given(layer, other))) || 1);
  if (!rows.length) return h("p.empty", "This node attends to nothing.");
  const header = h("tr", h("th", { scope: "col" }, "gives to"), layers.map((layer, l) =>
    h("th", { scope: "col" }, clean(layer.name), h("small", layer.kind === "probability" ? "probability, to 1" : `to ${share(tops[l])}`))));
  const cut = distinct(rows.map(other => labelOf(view, other)), rows.map(other => view.nodes[other].code), 14, 230);
  const names = new Map(rows.map((other, at) => [other, cut[at]]));
  const line = other => {
    const { code, description, kind } = view.nodes[other];
    const own = other === node;
    const mark = own ? " (itself)" : isTrue(other) ? h("span.true-mark", { title: "truly connected" }, " ● true") : null;
    const cell = (layer, l) => h("td", bar(given(layer, other) / tops[l], isTrue(other) ? "true" : `kind-${kind}`),
      h("span.number", share(given(layer, other))));
    return h("tr", { class: own ? "own" : null },
      h("th", { scope: "row" }, h("bdi", { title: whole(code, description) }, names.get(other)), mark), layers.map(cell));
  };
  const groups = IN_ORDER.map(kind => rows.filter(other => view.nodes[other].kind === kind)).filter(group => group.length);
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "bars" }, h("table.bars",
    h("caption", "What ", node ? named(view.nodes[node].code, view.nodes[node].description) : "the visit", " attends to"), h("thead", header),
    groups.map(group => h("tbody",
      h("tr.group", h("th", { colspan: layers.length + 1, scope: "rowgroup" }, HEADINGS[view.nodes[group[0]].kind])), group.map(line)))));
}
