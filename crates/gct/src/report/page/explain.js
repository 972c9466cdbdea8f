// What a model makes of one encounter: the answer, why, the visits before it, what was in it, where the model looked, and how good such answers are.

const VIEWS = [["graph", "Graph"], ["list", "List"], ["heat", "Heat map"], ["bars", "Bars"]];

/** A graph needs room; below this width a list says the same. */
const GRAPH_ROOM = 560;

/**
 * All that is said of one explanation. `settings` are {label, layer, view, node, visit}, and `change` hears what the reader changes of them;
 * `update` shows other settings of the same explanation.
 */
function explain(view, run, report, change) {
  const root = h("div.explain");
  const labels = run.asks === "labels" && view.answers.length > 1 ? labelChoice(view, change) : null;
  const answer = h("div"), why = h("div"), alike = h("div");
  const timeline = timelinePart(view, run, change);
  const look = lookPart(view, run, change);
  root.append(...unknownCodes(view), ...labels ? [labels.root] : [], answer, why, ...timeline ? [timeline.root] : [], contentsPart(view), look.root, alike);
  let shown;

  function update(settings) {
    const what = (view.answers.find(each => each.what === settings.label) ?? view.answers[0])?.what;
    if (what !== shown || !answer.firstChild) {
      shown = what;
      labels?.choose(what);
      const put = (place, content) => place.replaceChildren(...content ? [content] : []);
      put(answer, answerPart(view, run, what));
      put(why, whyPart(view, run, what, own => timeline?.explain(own)));
      put(alike, alikePart(view, run, report, what));
    }
    timeline?.choose(settings.visit);
    look.update(settings);
  }

  return { root, update };
}

/** The labels of a run that has several, each with its probability. */
function labelChoice(view, change) {
  const select = h("select", { change: () => change({ label: select.value }) },
    view.answers.map(each => h("option", { value: each.what }, `${clean(each.what)}: ${chance(each.probability)}`)));
  return { root: h("p.controls", h("label", "Label ", select)), choose: what => { select.value = what; } };
}

/** The layers of a model over the nodes of an encounter: as a graph, a list, a heat map or bars. */
function lookPart(view, run, change) {
  let settings = {}, drawn = null, layer, least = 0;
  const readout = h("p.readout", { role: "status" });
  const pane = h("div.pane"), aside = h("div.aside");
  const names = view.layers.map(each => [each.name, clean(each.name)]);
  const layers = choice("Layer", names, null, name => change({ layer: name }));
  const views = choice("View", VIEWS, null, name => change({ view: name }));
  const hidden = h("output", "0");
  const slider = h("input", { type: "range", min: 0, max: 100, value: 0, input: () => { least = (slider.value / 100) ** 2; threshold(); } });
  const option = node => h("option", { value: node }, shortened(whole(view.nodes[node].code, view.nodes[node].description), 13, 320));
  const codes = h("select", { change: () => change({ node: codes.value === "" ? null : Number(codes.value) }) },
    h("option", { value: "" }, "all codes"), IN_ORDER.map(kind => {
      const nodes = view.nodes.flatMap((node, place) => node.kind === kind ? [place] : []);
      return nodes.length ? h("optgroup", { label: HEADINGS[kind] }, nodes.map(option)) : null;
    }));
  const sliderField = h("label.slider", "Hide links below ", hidden, slider);
  const root = part("look", run.asks === "pairs" ? "What the model connects, and where it looked" : "Where the model looked",
    run.asks !== "pairs" && view.layers.length > 0 && h("p.muted", "Attention is how much a code takes from others on the way to the answer. It is not the reason for the answer: a code that is looked at may change nothing."),
    view.visits?.length > 0 && view.layers.length > 0 && h("p.muted", run.history?.aggregator === "bag"
      ? "The model mixes these codes with those of earlier visits. What goes to those is not drawn, so that not all of what a code gives is seen."
      : "This is about the encounter alone. Each earlier visit is looked at by itself."),
    view.layers.length ? h("div.controls", layers, views, h("label", "Look at ", codes), sliderField)
      : h("p.muted", "This model does not mix nodes, so there is no attention to show. ",
        view.edges ? "These are the codes of the encounter and its true edges." : "These are the codes of the encounter."),
    readout, h("div.stage", pane, aside));

  const isPinned = () => typeof settings.node === "number" && settings.node < view.nodes.length;
  const pinned = () => isPinned() ? settings.node : null;

  function threshold() {
    if (drawn?.kind !== "graph") return;
    const { drawn: lines, all } = drawn.least(least);
    hidden.textContent = share(least * drawn.strongest);
    drawn.count.textContent = lines < all ? `${integer(lines)} of ${integer(all)} links are drawn, the strongest.` : `${integer(all)} links.`;
  }

  /** Shows a node that is pointed at, or else the chosen one. */
  function look(node) {
    const shown = node ?? pinned();
    if (drawn?.kind === "graph") drawn.show(shown, pinned());
    const invitation = `Point at a code, or move to it with the keyboard, to see ${layer ? "what it attends to" : "its edges"}.`;
    readout.replaceChildren(...shown === null ? [invitation] : sentence(shown));
    if (drawn?.kind === "bars") return;
    // It may grow but not shrink: a page that became shorter would scroll, and take the node away from under the mouse.
    aside.style.minHeight = `${aside.offsetHeight}px`;
    aside.replaceChildren(shown === null ? (drawn?.kind === "list" ? "" : strongest(view, run, layer, 10)) : given(view, layer, shown));
  }

  function sentence(node) {
    const { kind, code, description } = view.nodes[node];
    const about = [h("strong", h("bdi", kind ? titleOf(code, description) : "the visit")),
      kind ? [" (", KINDS[kind], hasTitle(code, description) ? [", ", h("bdi", clean(code))] : "", ")"] : "", node === view.hidden ? ", hidden from the model" : ""].flat(2);
    if (!layer) return about;
    const [gives, gets] = [favourite((n, other) => layer.matrix[node * n + other]), favourite((n, other) => layer.matrix[other * n + node])];
    const phrase = (verb, [other, value]) => other === null ? []
      : [verb, named(view.nodes[other].code, view.nodes[other].description), ` ${share(value)}`];
    return layer.kind === "probability" ? [...about, ...phrase(": most probably connected with ", gives), "."]
      : [...about, ...phrase(": gives most to ", gives), ...phrase("; gets most from ", gets), "."];

    function favourite(value) {
      const n = view.nodes.length;
      let best = [null, 0];
      for (let other = 0; other < n; other++) if (other !== node && value(n, other) > best[1]) best = [other, value(n, other)];
      return best;
    }
  }

  function lookAtCell(cell) {
    if (!cell) return look(null);
    const [from, to] = [cell.from, cell.to].map(node => h("strong", named(view.nodes[node].code, view.nodes[node].description)));
    const value = share(layer.matrix[cell.from * view.nodes.length + cell.to]);
    const isTrue = (view.edges ?? []).some(([a, b]) => (a === cell.from && b === cell.to) || (b === cell.from && a === cell.to));
    readout.replaceChildren(...layer.kind === "probability" ? [from, " and ", to, `: probability ${value}`] : [from, ` gives ${value} to `, to],
      isTrue ? ", truly connected." : ".");
  }

  function draw() {
    // On paper, where there are no buttons, this says which layer it is.
    const title = () => h("h4", layer.kind === "probability"
      ? "Which nodes the model takes for connected" : `What nodes give to each other: ${clean(layer.name)}`);
    const pick = node => change({ node: node === settings.node ? null : node });
    drawn = null;
    aside.style.minHeight = "";
    if (settings.view === "bars" && layer) {
      const node = pinned() ?? Math.min(1, view.nodes.length - 1);
      codes.value = node;
      drawn = { kind: "bars" };
      aside.replaceChildren();
      pane.replaceChildren(bars(view, node));
    } else if (settings.view === "heat" && layer) {
      drawn = { kind: "heat" };
      pane.replaceChildren(title(), sized("div.heat", width => heatMap(view, layer, width, { look: lookAtCell, pick })));
    } else if (settings.view === "list" && layer) {
      drawn = { kind: "list" };
      pane.replaceChildren(title(), strongest(view, run, layer, 30), h("p.muted", edgesInWords(view, layer)));
    } else {
      const place = h("p.muted");
      const legendPlace = h("div");
      pane.replaceChildren(...layer ? [title()] : [], legendPlace, sized("div", width => {
        drawn = { kind: "graph", count: place, ...graph(view, layer, width, { look, pick }) };
        legendPlace.replaceChildren(graphLegend(view, layer, drawn));
        threshold();
        look(null);
        return drawn.svg;
      }), place, h("p.muted", edgesInWords(view, layer)));
    }
    sliderField.hidden = settings.view !== "graph" || !layer;
  }

  function update(next) {
    const before = settings;
    const isNarrow = document.documentElement.clientWidth <= GRAPH_ROOM && view.layers.length > 0;
    const wanted = VIEWS.some(([name]) => name === next.view) ? next.view : "graph";
    settings = { ...next, view: isNarrow && wanted === "graph" ? "list" : wanted };
    const chosen = view.layers.find(each => each.name === settings.layer) ?? defaultLayer(view.layers);
    const same = drawn && chosen === layer && before.view === settings.view && settings.view !== "bars";
    layer = chosen;
    layers.choose(layer?.name);
    views.choose(settings.view);
    codes.value = pinned() ?? "";
    if (!same) draw();
    look(null);
  }

  return { root, update };
}

/** How many of the hidden edges the layer finds, and how many of the pairs that it names are edges. */
function edgesInWords(view, layer) {
  if (!layer) return "";
  if (!view.edges) return "Which codes are truly connected is not known here.";
  const { pairs, edges, named, found } = findingsOf(view, layer);
  const rule = layer.kind === "probability" ? "a probability of at least one half" : "an end that gives the other its average share or more";
  const portion = (some, all) => all ? (some / all).toFixed(2) : DASH;
  return `Of ${integer(edges)} true edges between codes ${integer(found)} are found, by ${rule}: recall ${portion(found, edges)}. Of the ${integer(named)} pairs that pass this rule `
    + `${integer(found)} are true: precision ${portion(found, named)}, where ${portion(edges, pairs)} of all ${integer(pairs)} pairs are true. Edges of the visit are given and not counted.`;
}

function unknownCodes(view) {
  if (!view.unknown.length) return [];
  return [h("div.notice", { role: "status" }, h("strong", "Left out, since the model does not know them: "),
    view.unknown.map(({ kind, code }, at) => [at ? ", " : "", `${clean(kind)} `, named(code)]), ".")];
}

/** The strongest links of a layer by name. That the visit is connected with its diagnoses and its context is certain, and no news where pairs are asked for. */
function strongest(view, run, layer, most) {
  if (!layer) return h("div");
  const news = link => run.asks !== "pairs" || (view.nodes[link.from].kind !== 0 && view.nodes[link.to].kind !== 0);
  const links = linksOf(view, layer).filter(link => link.strength > 0 && news(link)).slice(-most).reverse();
  if (!links.length) return h("p.muted", "No node gives anything to another.");
  const mutual = layer.kind === "probability";
  const truth = truthOf(view);
  return table(mutual ? "Most probable connections" : "Strongest attention", [
    { name: mutual ? "between" : "from", cell: ({ from }) => inShort(view, from) },
    { name: mutual ? "and" : "to", cell: ({ to }) => inShort(view, to) },
    { name: mutual ? "probability" : "attention", number: true, cell: link => share(link.strength) },
    ...view.edges ? [{ name: "true edge", cell: link => truth.has(Math.min(link.from, link.to) * view.nodes.length + Math.max(link.from, link.to)) ? h("span.true-mark", "● yes") : "no" }] : [],
  ], links, { class: "small links-of-encounter" });
}

/** A node in a table. */
function inShort(view, node) {
  return node ? labelledNode(view.nodes[node]) : "the visit";
}

/** What a node gives to others and gets from them. */
function given(view, layer, node) {
  const n = view.nodes.length;
  const about = h("p", h("strong", inShort(view, node)));
  if (!layer) return h("div.whole", about);
  const isTrue = new Set((view.edges ?? []).flatMap(([a, b]) => a === node ? [b] : b === node ? [a] : []));
  const both = other => [layer.matrix[node * n + other], layer.matrix[other * n + node]];
  const rows = view.nodes.map((_, other) => other).filter(other => other !== node && Math.max(...both(other)) > 0)
    .sort((a, b) => both(b)[0] - both(a)[0] || both(b)[1] - both(a)[1]).slice(0, 15);
  const columns = layer.kind === "probability" ? [{ name: "probability", number: true, cell: other => share(both(other)[0]) }] : [
    { name: "gives", number: true, cell: other => share(both(other)[0]) },
    { name: "gets", number: true, cell: other => share(both(other)[1]) },
  ];
  return h("div.whole", about, rows.length ? table(layer.kind === "probability" ? "Connected with" : "Attention to and from others",
    [{ name: "other", cell: other => inShort(view, other) }, ...columns,
      ...view.edges ? [{ name: "true edge", cell: other => isTrue.has(other) ? h("span.true-mark", "● yes") : "no" }] : []], rows, { class: "small" })
    : h("p.muted", "It gives nothing to others and gets nothing from them."));
}
