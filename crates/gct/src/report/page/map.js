// The codes as points in a plane: codes that the model takes for similar are near each other.

function mapSection(main, report, run, go) {
  const { map, codes } = run;
  if (!map) {
    main.append(h("section", h("h2", "Map of codes"), h("p.empty", "This report has no map of codes.")));
    return () => {};
  }
  const mapped = map.x.filter(known).length;
  const shown = IN_ORDER.filter(kind => kind && (kind < 4 || codes.kind.includes(kind)));
  const kinds = new Set(shown);
  let chosen = null, under = null, zoom = 1, centre = [0.5, 0.5], points = [];
  const ranges = [map.x, map.y].map(values => {
    const [low, high] = values.reduce(([a, b], value) => known(value) ? [Math.min(a, value), Math.max(b, value)] : [a, b], [Infinity, -Infinity]);
    return [low, high - low || 1];
  });
  const at = index => [(map.x[index] - ranges[0][0]) / ranges[0][1], 1 - (map.y[index] - ranges[1][0]) / ranges[1][1]];
  const readout = h("p.readout", { role: "status" });
  const search = h("input", { type: "search", placeholder: "code or description", "aria-label": "Search codes", input: list });
  const results = h("ul.results"), side = h("div.neighbours");
  const boxes = shown.map(kind => h("label.kind", h("input", { type: "checkbox", checked: true, change: event => {
    if (event.target.checked) kinds.add(kind); else kinds.delete(kind);
    plane.redraw();
    list();
  } }), s(`svg.kind-${kind}`, { width: 14, height: 14, "aria-hidden": "true" }, s("path.shape", { d: shapeOf(kind, 7, 7, 4.5) })), HEADINGS[kind]));

  let canvas = null;
  const plane = sized("div.plane", width => {
    const height = Math.min(560, Math.max(320, width * 0.75));
    const scale = window.devicePixelRatio || 1;
    canvas = h("canvas", { width: Math.round(width * scale), height: Math.round(height * scale), tabindex: 0, role: "img",
      "aria-label": `Map of ${mapped} codes. Plus and minus zoom, arrow keys move; search beside it finds a code.` });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    // A finger scrolls the page until the map is larger than its frame.
    canvas.style.touchAction = zoom > 1 ? "none" : "pan-y";
    paint(width, height, scale);
    listen(width, height, scale);
    return canvas;
  });

  function paint(width, height, scale) {
    const ink = canvas.getContext("2d");
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, width, height);
    const pad = 16;
    const place = index => at(index).map((p, axis) => {
      const size = axis ? height : width;
      return size / 2 + (p - centre[axis]) * (size - 2 * pad) * zoom;
    });
    const near = new Set(chosen === null ? [] : map.neighbours[chosen]);
    points = [];
    codes.kind.forEach((kind, index) => {
      if (!kinds.has(kind) || !known(map.x[index]) || !known(map.y[index])) return;
      const [x, y] = place(index);
      if (x < -8 || y < -8 || x > width + 8 || y > height + 8) return;
      points.push({ index, kind, x, y });
    });
    const size = points.length > 3000 && zoom < 3 ? 2.2 : 3.6;
    for (const kind of kinds) {
      ink.fillStyle = `rgb(${rgb(`--kind-${kind}`).join(",")})`;
      for (const point of points) {
        if (point.kind !== kind) continue;
        const special = point.index === chosen || near.has(point.index) || point.index === under;
        ink.globalAlpha = special || chosen === null ? 0.85 : 0.25;
        ink.fill(new Path2D(shapeOf(kind, point.x, point.y, special ? size + 2 : size)));
      }
    }
    ink.globalAlpha = 1;
    ink.font = fontOf(11.5);
    const [text, paper] = [rgb("--ink"), rgb("--paper")].map(colour => `rgb(${colour.join(",")})`);
    const taken = [];
    // The chosen code and what is pointed at are named first; a name that would cover another is left out.
    const first = [under, chosen].filter(index => index !== null);
    const rest = zoom >= 4 && points.length <= 60 ? points.map(point => point.index) : [];
    for (const index of new Set([...first, ...chosen === null ? [] : map.neighbours[chosen], ...rest])) {
      const point = points.find(each => each.index === index);
      if (!point) continue;
      const label = shortened(codes.code[index], 11.5, 150);
      const wide = ink.measureText(label).width;
      const x = point.x + 8 + wide > width ? point.x - 8 - wide : point.x + 8;
      const box = [x - 2, point.y - 8, x + wide + 2, point.y + 8];
      if (taken.some(other => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
      taken.push(box);
      ink.strokeStyle = paper;
      ink.lineWidth = 3;
      ink.strokeText(label, x, point.y + 4);
      ink.fillStyle = text;
      ink.fillText(label, x, point.y + 4);
      if (index === chosen) {
        ink.strokeStyle = text;
        ink.lineWidth = 1.5;
        ink.beginPath();
        ink.arc(point.x, point.y, size + 5, 0, 7);
        ink.stroke();
      }
    }
  }

  function listen(width, height, scale) {
    const redraw = () => paint(width, height, scale);
    const nearest = event => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * height / box.height];
      let [best, distance] = [null, 14 ** 2];
      for (const point of points) {
        const d = (point.x - x) ** 2 + (point.y - y) ** 2;
        if (d < distance) [best, distance] = [point.index, d];
      }
      return best;
    };
    let from = null, dragged = false;
    canvas.addEventListener("pointerdown", event => { from = [event.clientX, event.clientY, ...centre]; dragged = false; });
    canvas.addEventListener("pointermove", event => {
      if (from && event.buttons && zoom > 1) {
        const moved = [event.clientX - from[0], event.clientY - from[1]];
        if (Math.hypot(...moved) > 4) dragged = true;
        if (dragged) move([from[2] - moved[0] / (width * zoom), from[3] - moved[1] / (height * zoom)]);
        return;
      }
      const now = nearest(event);
      if (now !== under) { under = now; say(); redraw(); }
    });
    canvas.addEventListener("pointerup", () => { from = null; });
    canvas.addEventListener("pointerleave", () => { from = null; under = null; say(); redraw(); });
    canvas.addEventListener("click", event => { const index = nearest(event); if (!dragged && index !== null) go({ code: index }); });
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(event.deltaY < 0 ? 1.25 : 0.8);
    }, { passive: false });
    canvas.addEventListener("keydown", event => {
      const step = 0.15 / zoom;
      const factor = { "+": 1.5, "=": 1.5, "-": 1 / 1.5, 0: 0 }[event.key];
      const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
      if (factor === undefined && !by) return;
      event.preventDefault();
      if (by) move([centre[0] + by[0], centre[1] + by[1]]);
      else zoomBy(factor);
    });
    function move(next) {
      centre = next.map(p => Math.min(1, Math.max(0, p)));
      redraw();
    }
    plane.zoomBy = factor => {
      zoom = factor === 0 ? 1 : Math.min(60, Math.max(1, zoom * factor));
      if (zoom === 1) centre = [0.5, 0.5];
      canvas.style.touchAction = zoom > 1 ? "none" : "pan-y";
      redraw();
    };
    plane.paint = redraw;
  }

  const zoomBy = factor => plane.zoomBy?.(factor);
  const describeCode = index => [h("strong", h("bdi", clean(codes.code[index]))), ` (${KINDS[codes.kind[index]]})`,
    codes.description[index] ? h("bdi", ` ${clean(codes.description[index])}`) : "", `, in ${count(codes.count[index], report.min_cell)} encounters`];

  function say() {
    const index = under ?? chosen;
    readout.replaceChildren(...index === null ? ["Point at a code to see its name; choose it to see what is similar."] : describeCode(index));
  }

  /** A button that leads to a code, and shows where it is while it has the focus. */
  function link(index, beside) {
    const show = place => () => { under = place; say(); plane.paint?.(); };
    return h("li", h("button.link", { type: "button", title: whole(codes.code[index], codes.description[index]), click: () => go({ code: index }),
      focus: show(index), blur: show(null), pointerenter: show(index), pointerleave: show(null) },
    s(`svg.kind-${codes.kind[index]}`, { width: 12, height: 12, "aria-hidden": "true" }, s("path.shape", { d: shapeOf(codes.kind[index], 6, 6, 4) })),
    h("bdi", shortened(whole(codes.code[index], codes.description[index]), 14, 200)), beside && h("span.muted", beside)));
  }

  function list() {
    const text = search.value.trim();
    const found = text ? [...matching(run, text)].filter(index => kinds.has(codes.kind[index])) : [];
    const note = text && !found.length ? "No such code." : found.length > 12 ? `and ${integer(found.length - 12)} more` : null;
    results.replaceChildren(...found.slice(0, 12).map(index => link(index)), ...note ? [h("li.muted", note)] : []);
  }

  main.append(h("section", h("h2", "Map of codes"),
    h("p.muted", "Each point is a code. The nearer two points, the more alike the model's embeddings of the codes, as far as a plane can show it: ",
      `its two axes hold ${percent(map.explained?.[0])} and ${percent(map.explained?.[1])} of the differences. `,
      "The list of similar codes uses all of them.",
      mapped < codes.code.length && ` Of ${integer(codes.code.length)} codes the ${integer(mapped)} most frequent are on the map.`),
    h("div.controls", boxes, h("div.zoom", h("button", { type: "button", "aria-label": "Zoom in", click: () => zoomBy(1.5) }, "+"),
      h("button", { type: "button", "aria-label": "Zoom out", click: () => zoomBy(1 / 1.5) }, "−"),
      h("button", { type: "button", click: () => zoomBy(0) }, "Whole map"))),
    readout, h("div.stage", h("div.pane", plane), h("div.aside", search, results, side))));

  return state => {
    chosen = Number.isInteger(state.code) && state.code < codes.code.length ? state.code : null;
    under = null;
    side.replaceChildren(...chosen === null ? [h("p.muted", "Choose a code on the map, or search for one, to see what is similar to it.")]
      : [h("h3", "Similar to ", h("bdi", { title: clean(codes.code[chosen]) }, shortened(codes.code[chosen], 16, 200))),
        ...known(map.x[chosen]) ? [h("p.muted", "By cosine of their embeddings, 1 is the same direction."),
          h("ol.results", map.neighbours[chosen].map((index, rank) => link(index, figure(map.similarity[chosen][rank], 2))))]
          : [h("p.muted", "It is not on the map, since more frequent codes fill it.")]]);
    say();
    plane.paint?.();
  };
}

const percent = portion => known(portion) ? `${(100 * portion).toFixed(0)} %` : DASH;

/** Diagnoses are circles, treatments triangles, labs squares, context diamonds. */
function shapeOf(kind, x, y, r) {
  if (kind === 1) return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  if (kind === 2) return `M${x} ${y - r * 1.2}l${r * 1.15} ${r * 2}h${-2.3 * r}z`;
  if (kind === 4) return `M${x} ${y - r * 1.25}l${r * 1.25} ${r * 1.25}l${-1.25 * r} ${1.25 * r}l${-1.25 * r} ${-1.25 * r}z`;
  return `M${x - r * 0.9} ${y - r * 0.9}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`;
}
