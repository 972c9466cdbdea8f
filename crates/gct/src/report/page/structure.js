// How near attention is to the truth, and the links that a model believes in over all encounters.

const STRUCTURE = [
  ["edges_aucpr", "Edges, AUCPR", "How well attention alone ranks the true edges. 1 is perfect."],
  ["kl_attention_truth", "KL(attention ‖ truth)",
    "How far attention is from the true edges, in nats. 0 is equal. This is what fits the paper's table."],
  ["kl_truth_attention", "KL(truth ‖ attention)", "The same, from the other side: large where attention leaves a true edge out."],
  ["entropy", "Entropy", "How widely attention is spread, in nats. 0 looks at one node alone."],
];

function structureSection(main, report, run) {
  const { structure } = run;
  if (!structure) {
    main.append(h("section", h("h2", "Attention and truth"), h("p.empty", run.layers.length
      ? `The true edges of ${report.min_cell > 1 ? "enough of " : ""}these encounters are not known, so attention cannot be compared with them.`
      : "This model does not mix nodes, so it has no attention to compare with the true edges.")));
  } else {
    // Blocks stand where their names are: the first block of a model without P is another thing than P.
    const compared = peers(report, run).filter(({ each }) => each.structure);
    const number = name => name === "P" ? 0 : Number(/\d+$/.exec(name)?.[0] ?? 0);
    const blocks = [...new Set(compared.flatMap(({ each }) => each.structure.blocks))].sort((a, b) => number(a) - number(b));
    const lines = key => compared.map(({ each, look, strong }) => ({ name: each.name, look, strong,
      points: each.structure[key].flatMap((value, place) => known(value) ? [[blocks.indexOf(each.structure.blocks[place]), value]] : []) }));
    const last = blocks.length - 1;
    main.append(h("section", h("h2", "Attention and truth"),
      h("p.muted", `Over ${known(structure.encounters) ? integer(structure.encounters) : "the"} encounters whose true edges are known, block by block.`),
      h("div.columns.charts.four", STRUCTURE.map(([key, title, note]) => {
        const series = lines(key);
        return lineChart({ title, note, height: 170, series, x: { name: "block", names: blocks, range: [-0.25, last + 0.25] },
          y: { name: key === "edges_aucpr" ? "AUCPR" : "nats", range: rangeOf(series.flatMap(line => line.points.map(point => point[1])), 0) } });
      })),
      table("Attention and truth by block", [
        { name: "block", cell: block => clean(structure.blocks[block]) },
        ...STRUCTURE.map(([key, title]) => ({ name: title, number: true, cell: block => figure(structure[key][block]) })),
      ], [...structure.blocks.keys()], { class: "blocks" })));
  }
  main.append(linksSection(report, run));
}

/** All links of the part, to search, sort and take away. */
function linksSection(report, run) {
  const isPair = run.asks === "pairs";
  // Attention has a direction, and each way is a link; probabilities have none, and are from cause to effect.
  const [from, to, about] = isPair ? ["cause", "effect", "mean probability"] : ["from", "to", "mean attention"];
  const title = h("h2", "Links over all encounters");
  if (!run.links.length) {
    return h("section", title, h("p.empty", run.layers.length
      ? "No pair of codes is together often enough to be listed." : "A model that does not mix nodes links nothing."));
  }
  // Counts of true edges may all be too small to be shown; where attention was compared with the truth, they are known.
  const truthKnown = run.links.some(link => known(link.true)) || (report.min_cell > 0 && run.structure !== null);
  // Where the truth is known of some encounters only, a count of true edges is one among these.
  const ofSome = truthKnown && run.links.some(link => link.known !== link.encounters);
  const code = at => run.codes.code[at];
  const name = at => titleOf(code(at), run.codes.description[at]);
  const columns = [
    [from, link => name(link.from)], [to, link => name(link.to)], [about, link => link.mean],
    ["encounters", link => link.encounters], ...ofSome ? [["truth known", link => link.known]] : [],
    ...truthKnown ? [["truly connected", link => link.true]] : [],
  ];
  let sort = { column: 2, down: true }, page = 0, kind = "all", shown = [];
  const size = 25;
  // What is together in few encounters leads any ranking by chance.
  const usual = Math.min(10, Math.max(1, ...run.links.map(link => link.encounters ?? 0)));
  let support = usual;
  const least = h("input.number-field", { type: "number", min: 1, step: 1, value: usual, "aria-label": "Least number of encounters", input: () => {
    support = Math.max(1, Number(least.value) || 1);
    arrange();
  } });
  const search = h("input", { type: "search", placeholder: "code or description", "aria-label": "Search links", input: arrange });
  const kinds = choice("Kind", [["all", "all"], ["1", "diagnosis – treatment"], ["2", "treatment – lab"]], "all", value => {
    kind = value;
    arrange();
  });
  const heads = columns.map(([name], column) => h(column > 1 ? "th.number" : "th", { scope: "col" }, h("button", { type: "button", click: () => {
    sort = { column, down: sort.column === column ? !sort.down : column > 1 };
    arrange();
  } }, name)));
  const body = h("tbody"), place = h("span", { role: "status" });
  const turn = step => h("button", { type: "button", click: () => { page += step; paint(); } }, step < 0 ? "Previous" : "Next");
  const [back, on] = [turn(-1), turn(1)];

  function arrange() {
    const codes = search.value.trim() ? matching(run, search.value.trim()) : null;
    shown = run.links.filter(link => (link.encounters ?? Infinity) >= support && (!codes || codes.has(link.from) || codes.has(link.to)) &&
      (kind === "all" || Math.min(run.codes.kind[link.from], run.codes.kind[link.to]) === Number(kind)));
    const value = columns[sort.column][1];
    const compare = sort.column < 2 ? (a, b) => value(a).localeCompare(value(b), "en", { numeric: true })
      : (a, b) => (value(a) ?? -1) - (value(b) ?? -1);
    shown.sort((a, b) => (sort.down ? -1 : 1) * compare(a, b));
    page = 0;
    heads.forEach((head, column) => {
      const own = column === sort.column;
      head.setAttribute("aria-sort", own ? (sort.down ? "descending" : "ascending") : "none");
    });
    paint();
  }

  function paint() {
    const rows = shown.slice(page * size, (page + 1) * size);
    const cell = at => h("td", labelled(code(at), run.codes.description[at]));
    const line = link => h("tr", cell(link.from), cell(link.to), h("td.number", bar(link.mean), figure(link.mean, 3),
        known(link.low) && known(link.high) && h("span.muted.what", `${figure(link.low, 3)} to ${figure(link.high, 3)}`)),
      h("td.number", count(link.encounters, report.min_cell)), ofSome && h("td.number", count(link.known, report.min_cell)), truthKnown && h("td.number", count(link.true, report.min_cell)));
    body.replaceChildren(...rows.length ? rows.map(line) : [h("tr", h("td", { colspan: columns.length }, "No such link."))]);
    place.textContent = rows.length ? `${integer(page * size + 1)} to ${integer(page * size + rows.length)} of ${integer(shown.length)}` : "0";
    back.disabled = page === 0;
    on.disabled = (page + 1) * size >= shown.length;
  }

  function save() {
    const number = value => known(value) ? value : count(value, report.min_cell);
    const row = link => [code(link.from), run.codes.description[link.from], code(link.to), run.codes.description[link.to],
      link.mean, link.low ?? null, link.high ?? null, number(link.encounters), ...ofSome ? [number(link.known)] : [], ...truthKnown ? [number(link.true)] : []];
    const heading = [from, `${from}_description`, to, `${to}_description`, about.replace(" ", "_"), "low", "high", "encounters",
      ...ofSome ? ["truth_known"] : [], ...truthKnown ? ["truly_connected"] : []];
    download(`links-${clean(run.name).replace(/[^\w-]+/g, "_")}.csv`, csv([heading, ...shown.map(row)]));
  }

  arrange();
  return h("section.links-section", title,
    h("p.muted", isPair ? "Pairs of codes by the probability that the model gives to their connection" : "What a code gives to another in the last block, which is not what it gets back",
      ": the mean over the encounters that have both, with its 95 % interval over subjects where there are two or more.", !truthKnown ? "" : ofSome
        ? " Truth known: of how many of these encounters it is known what is connected. Truly connected: in how many of those."
        : " Truly connected: in how many of these encounters."),
    h("div.controls", search, kinds, h("label", "In at least ", least, " encounters"), h("button", { type: "button", click: save }, "Save as CSV")),
    h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Links" }, h("table.links-table", h("thead", h("tr", heads)), body)),
    h("div.pager", back, place, on));
}
