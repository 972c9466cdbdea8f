// What a model makes of one encounter: its answers, and its layers as graph, heat map or bars.

const VIEWS = [["graph", "Graph"], ["heat", "Heat map"], ["bars", "Bars"]];

/**
 * The views of one explanation. `settings` are {layer, view, node}, and `change` hears what the reader changes of them; `update` shows
 * other settings of the same explanation.
 */
function explain(view, asks, change) {
  let settings = {}, drawn = null, layer, least = 0;
  const root = h("div.explain");
  const readout = h("p.readout", { role: "status" });
  const pane = h("div.pane"), aside = h("div.aside");
  const names = view.layers.map(each => [each.name, clean(each.name)]);
  const layers = choice("Layer", names, null, name => change({ layer: name }));
  const views = choice("View", VIEWS, null, name => change({ view: name }));
  const hidden = h("output", "0");
  const slider = h("input", { type: "range", min: 0, max: 100, value: 0, input: () => { least = (slider.value / 100) ** 2; threshold(); } });
  const option = node => h("option", { value: node }, shortened(labelOf(view, node), 13, 260));
  const codes = h("select", { change: () => change({ node: codes.value === "" ? null : Number(codes.value) }) },
    h("option", { value: "" }, "all codes"), IN_ORDER.map(kind => {
      const nodes = view.nodes.flatMap((node, place) => node.kind === kind ? [place] : []);
      return nodes.length ? h("optgroup", { label: HEADINGS[kind] }, nodes.map(option)) : null;
    }));
  const sliderField = h("label.slider", "Hide links below ", hidden, slider);
  root.append(answers(view, asks), ...unknownCodes(view), view.layers.length
    ? h("div.controls", layers, views, h("label", "Look at ", codes), sliderField)
    : h("p.empty", "This model does not mix nodes, so there is no attention to show. ",
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
    aside.replaceChildren(shown === null ? strongest(view, asks, layer) : given(view, layer, shown));
  }

  function sentence(node) {
    const { kind, code, description } = view.nodes[node];
    const about = [h("strong", h("bdi", kind ? clean(code) : "the visit")), kind ? ` (${KINDS[kind]})` : "",
      description && description !== code ? h("bdi", ` ${clean(description)}`) : "", node === view.hidden ? ", hidden from the model" : ""];
    if (!layer) return about;
    const [gives, gets] = [favourite((n, other) => layer.matrix[node * n + other]), favourite((n, other) => layer.matrix[other * n + node])];
    const part = (verb, [other, value]) => other === null ? []
      : [verb, named(view.nodes[other].code, view.nodes[other].description), ` ${share(value)}`];
    return layer.kind === "probability" ? [...about, ...part(": most probably connected with ", gives), "."]
      : [...about, ...part(": gives most to ", gives), ...part("; gets most from ", gets), "."];

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
    const title = () => h("h3", layer.kind === "probability"
      ? "Which nodes the model takes for connected" : `Who attends to whom: ${clean(layer.name)}`);
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
    sliderField.hidden = settings.view === "heat" || settings.view === "bars" || !layer;
    // A large matrix needs the room beside it.
    root.classList.toggle("wide", drawn?.kind === "bars" || (drawn?.kind === "heat" && view.nodes.length > 50));
  }

  function update(next) {
    const before = settings;
    settings = { ...next, view: VIEWS.some(([name]) => name === next.view) ? next.view : "graph" };
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

/** How many true edges the layer finds. */
function edgesInWords(view, layer) {
  if (!layer) return "";
  if (!view.edges) return "Which codes are truly connected is not known here.";
  const links = linksOf(view, layer);
  const of = mark => links.filter(link => link.mark === mark).length;
  return `${of("found")} true edges found, ${of("missed")} missed: ` + (layer.kind === "probability"
    ? "the model gives them a probability below one half." : "neither end gives the other what it gives to nodes of that kind on average.");
}

/** What the model says, and what is true. */
function answers(view, asks) {
  if (!view.answers.length) return h("p.muted", asks === "pairs" ? "The model finds no connected pair of codes." : "The model gives no answer.");
  const [what, truth, words] = {
    labels: ["label", "truth", ["yes", "no"]],
    diagnosis: ["guess of the hidden diagnosis", "truth", ["right", "wrong"]],
    pairs: ["pair found", "truly connected", ["yes", "no"]],
  }[asks] ?? ["answer", "truth", ["yes", "no"]];
  const verdict = answer => answer.truth === true ? h("span.yes", "✓ ", words[0]) : answer.truth === false ? h("span.no", "✗ ", words[1]) : DASH;
  const rows = (from, to) => table("What the model says", [
    { name: what, cell: answer => h("bdi", { title: clean(answer.what) }, shortened(answer.what, 14, 420)) },
    { name: "probability", number: true, cell: answer => [bar(answer.probability), share(answer.probability)] },
    { name: truth, cell: verdict },
  ], view.answers.slice(from, to), { class: "answers" });
  const few = 5;
  return h("div", rows(0, few), view.answers.length > few && h("details", h("summary", `${view.answers.length - few} more`), rows(few)));
}

function unknownCodes(view) {
  if (!view.unknown.length) return [];
  return [h("div.notice", { role: "status" }, h("strong", "Left out, since the model does not know them: "),
    view.unknown.map(({ kind, code }, at) => [at ? ", " : "", `${clean(kind)} `, named(code)]), ".")];
}

/** The strongest links of a layer by name. That the visit is connected with its diagnoses and its context is certain, and no news where pairs are asked for. */
function strongest(view, asks, layer) {
  if (!layer) return h("div");
  const news = link => asks !== "pairs" || view.nodes[link.from].kind !== 0;
  const links = linksOf(view, layer).filter(link => link.strength > 0 && news(link)).slice(-15).reverse();
  return table("Strongest links", [
    { name: "between", cell: ({ from, to }) => [short(view, from), " – ", short(view, to)] },
    { name: layer.kind === "probability" ? "probability" : "attention", number: true, cell: link => share(link.strength) },
    ...view.edges ? [{ name: "true", cell: link => link.mark === "other" ? "no" : h("span.true-mark", "● yes") }] : [],
  ], links, { class: "small" });
}

function short(view, node) {
  const { code, description } = view.nodes[node];
  return h("bdi", { title: whole(code, description) }, shortened(labelOf(view, node), 13, 96));
}

/** What a node gives to others and gets from them. */
function given(view, layer, node) {
  const n = view.nodes.length;
  const { code, description } = view.nodes[node];
  const about = h("p", h("strong", h("bdi", clean(code))), description && description !== code ? h("bdi", ` ${clean(description)}`) : null);
  if (!layer) return h("div.whole", about);
  const isTrue = new Set((view.edges ?? []).flatMap(([a, b]) => a === node ? [b] : b === node ? [a] : []));
  const both = other => [layer.matrix[node * n + other], layer.matrix[other * n + node]];
  const rows = view.nodes.map((_, other) => other).filter(other => other !== node && Math.max(...both(other)) > 0)
    .sort((a, b) => Math.max(...both(b)) - Math.max(...both(a))).slice(0, 15);
  const columns = layer.kind === "probability" ? [{ name: "probability", number: true, cell: other => share(both(other)[0]) }] : [
    { name: "gives", number: true, cell: other => share(both(other)[0]) },
    { name: "gets", number: true, cell: other => share(both(other)[1]) },
  ];
  return h("div.whole", about, rows.length ? table(layer.kind === "probability" ? "Connected with" : "Attention to and from others",
    [{ name: "other", cell: other => short(view, other) }, ...columns,
      ...view.edges ? [{ name: "true", cell: other => isTrue.has(other) ? h("span.true-mark", "● yes") : "no" }] : []], rows, { class: "small" })
    : h("p.muted", "It gives nothing to others and gets nothing from them."));
}
