// What was learned and how well: figures, curves, and runs beside each other.

/** How the probabilities of labels were calibrated. */
const CALIBRATED = { platt: "calibrated on the validation split by Platt's method", isotonic: "calibrated on the validation split by isotonic regression" };

const figureName = name => FIGURES[name]?.[0] ?? words(name);

function overviewSection(main, report, run) {
  const { data } = run;
  const codes = IN_ORDER.map(kind => KINDS[kind]).filter(kind => kind in data.codes).map(kind => `${integer(data.codes[kind])} ${kind}`).join(", ");
  const facts = [
    ["Task", [taskName(run.task), h("span.muted", isNew(run) ? "Which diagnoses does the next visit have that no visit before it has?" : ASKS[run.asks] ?? "")]],
    ["Model", [clean(run.model), h("span.muted", `${integer(run.steps)} steps in ${duration(run.seconds)}`)]],
    ["Data", [clean(data.source), h("span.muted", `${count(data.encounters, report.min_cell)} encounters; codes: ${codes}`)]],
    ["Training split", `${count(data.training, report.min_cell)} encounters`],
    ["Evaluated on", [`${fewOr(data.asked, report.min_cell)} encounters`, h("span.muted",
      run.part === "all" ? "all of the data" : `the ${clean(run.part)} part`,
      data.left_out !== 0 ? `; ${fewOr(data.left_out, report.min_cell)} could not be evaluated and were left out` : "",
      data.learned_from && !data.warning ? `; ${integer(data.learned_from)} of subjects that the run learned from were left out` : "")]],
  ];
  if (run.history) facts.splice(2, 0, ["Earlier visits", historyInWords(run.history)]);
  if (data.warning) facts.unshift(["Warning", h("strong.warning", clean(data.warning))]);
  facts.push(["Intended use", intendedUse(report, run)]);
  main.append(h("section", h("h2", h("bdi", clean(run.name))), h("div.columns",
    h("dl.facts", facts.map(([name, text]) => h("div", h("dt", name), h("dd", text)))), h("div", figuresTable(run)))));
  main.append(...[outcomesSection(report, run), comparison(report, run), learning(report, run), curves(report, run), settings(report), provenance(report, run)].filter(Boolean));
}

/** What is seen of earlier visits, and what makes one vector of them. */
function historyInWords({ aggregator, visits, days }) {
  const how = { gru: "a gated recurrent unit goes from the oldest to the newest", cnn: "convolutions over them, and the largest of each", attention: "the encounter attends to them", bag: "all codes together, without order and times" };
  return [`up to ${integer(visits - 1)} before the encounter${known(days) ? `, of ${integer(days)} days` : ""}`, h("span.muted", how[aggregator] ?? clean(aggregator))];
}

/** For whom this is, and what it was made from. */
function intendedUse(report, run) {
  const source = clean(run.data.source) === "synthetic" ? "made-up data" : `${clean(run.data.source)} records`;
  return ["Research. Not a medical device, and not to be used for decisions about patients.",
    h("span.muted", `It learned from ${count(run.data.training, report.min_cell)} encounters of ${source}; how it does elsewhere is not known.`)];
}

/** Where the numbers come from, so that they can be had again. */
function provenance(report, run) {
  const made = report.made ?? {};
  const facts = [
    ["Page", [[clean(report.program), made.date && `on ${clean(made.date)}`].filter(Boolean).join(", "), made.command && h("span.muted", h("code", clean(made.command)))]],
    ["Run", [h("bdi", clean(run.name)), run.program && h("span.muted", `trained by ${clean(run.program)}`)]],
    ["Learned from", run.data.sha256 && [`${clean(run.data.source)} data`, h("span.muted", "SHA-256 ", h("code", clean(run.data.sha256)))]],
    ["Probabilities", CALIBRATED[run.calibrated]],
  ].filter(([, text]) => text);
  return h("section", h("h2", "Provenance"), h("dl.facts.wide", facts.map(([name, text]) => h("div", h("dt", name), h("dd", text)))));
}

function figuresTable(run) {
  // The data were made up, so it is known how good the best of all models would be.
  const ceilings = new Map((run.ceiling ?? []).map(({ figure: name, value }) => [name, value]));
  // What a figure means is said once, not for each label again.
  const rows = run.figures.map(entry => ({ ...entry, meaning: FIGURES[entry.name]?.[1] }));
  for (const label of run.labels ?? []) rows.push({ group: h("bdi", clean(label.name)) }, ...label.figures);
  return table("Metrics", [
    { name: "metric", cell: row => [figureName(row.name), row.meaning && h("span.muted.what", row.meaning)] },
    { name: "value, 95 % interval", number: true,
      cell: row => [h("strong", figure(row.value)), known(row.low) && known(row.high) && h("span.muted.what", interval(row)),
        known(ceilings.get(row.name)) && row.meaning && h("span.muted.what", `at best about ${figure(ceilings.get(row.name), 3)}`)] },
  ], rows, { class: "figures" });
}

const interval = row => `${figure(row.low)} to ${figure(row.high)}`;

/** What the runs of a group were asked, in words; more of it, where other groups have the same task. */
function groupNames(report) {
  const names = new Map(), taken = new Map();
  for (const run of report.runs) {
    if (names.has(run.group)) continue;
    const alone = report.runs.every(each => each.task !== run.task || each.group === run.group);
    const about = `${run.part === "all" ? "all" : `the ${clean(run.part)} part`} of ${clean(run.data.source)} data, ` +
      `${fewOr(run.data.asked, report.min_cell)} encounters`;
    const name = alone ? taskName(run.task) : `${taskName(run.task)}: ${about}`;
    taken.set(name, (taken.get(name) ?? 0) + 1);
    names.set(run.group, taken.get(name) > 1 ? `${name} (${taken.get(name)})` : name);
  }
  return names;
}

/** Runs and the paper's models, group by group: only what was asked the same about the same encounters is compared. */
function comparison(report, run) {
  const groups = groupNames(report);
  const rows = [...groups.keys()].flatMap(group => [
    ...report.runs.filter(each => each.group === group).map(each => ({
      of: group, name: each.name, strong: each === run, part: each.part,
      figures: new Map(each.figures.map(entry => [entry.name, entry])),
    })),
    ...paperRows(report, group),
  ]);
  if (rows.length < 2) return h("div");
  const names = [...new Set(report.runs.flatMap(each => each.figures.map(entry => entry.name)))];
  const best = (group, name) => {
    const values = rows.filter(row => row.of === group && !row.paper).map(row => row.figures.get(name)?.value).filter(known);
    return values.length < 2 ? null : LOWER_IS_BETTER.has(name) ? Math.min(...values) : Math.max(...values);
  };
  const cell = (row, name) => {
    const entry = row.figures.get(name);
    if (!known(entry?.value)) return DASH;
    const spread = row.paper ? known(entry.deviation) && `± ${figure(entry.deviation)}` : known(entry.low) && known(entry.high) && interval(entry);
    return [h(entry.value === best(row.of, name) && !row.paper ? "strong" : "span", figure(entry.value)), spread && h("span.muted.what", spread)];
  };
  const lines = [...groups].flatMap(([group, title]) => [{ group: title }, ...rows.filter(row => row.of === group)
    .map(row => ({ ...row, class: row.paper ? "paper-row" : row.strong ? "chosen" : null }))]);
  const chart = h("div");
  const draw = name => chart.replaceChildren(...[...groups].map(([group, title]) => {
    const shown = rows.filter(row => row.of === group && row.figures.has(name))
      .map(row => ({ ...row.figures.get(name), name: nameOf(row), strong: row.strong, paper: row.paper }));
    return shown.length ? h("div", h("h4", title), dotChart(`${figureName(name)}, ${title}`, shown)) : "";
  }));
  const first = names.includes(run.learning?.metric) ? run.learning.metric : names[0];
  const select = h("select", { change: () => draw(select.value) },
    names.map(name => h("option", { value: name, selected: name === first }, figureName(name))));
  draw(first);
  return h("section", h("h2", "Side by side"),
    h("p.muted", "Runs are compared if they have the same task and were evaluated on the same encounters; the best of these is bold. Intervals hold 95 % of bootstrap replicates; ",
      "the paper gives a mean and the deviation between five splits of its data."),
    table("Runs and the paper", [
      { name: "run", cell: row => [h("bdi", nameOf(row)), row.part === "all" ? h("span.muted.what", "on all of the data") : null] },
      ...names.map(name => ({ name: figureName(name), number: true, cell: row => cell(row, name) })),
    ], lines, { class: "comparison" }),
    h("figure", h("figcaption", h("label", "Metric ", select), " ", h("span.muted", "● run with its interval, ◇ the paper")), chart));
}

const nameOf = row => row.paper ? `${clean(row.name)}, paper` : clean(row.name);

function paperRows(report, group) {
  const models = new Map();
  for (const entry of report.paper ?? []) {
    if (entry.group !== group) continue;
    if (!models.has(entry.model)) models.set(entry.model, { of: group, name: entry.model, paper: true, figures: new Map() });
    const { value, deviation } = entry;
    const [low, high] = known(deviation) ? [value - deviation, value + deviation] : [null, null];
    models.get(entry.model).figures.set(entry.figure, { value, deviation, low, high });
  }
  return [...models.values()];
}

/** Runs of the same group, so that their lines may stand in one chart; the chosen one is drawn last, on top. */
function peers(report, run) {
  return report.runs.map((each, index) => ({ each, look: index % 6, strong: each === run })).filter(({ each }) => each.group === run.group)
    .sort((a, b) => a.strong - b.strong);
}

function learning(report, run) {
  const line = key => ({ each, look, strong }) => ({ name: each.name, look, strong,
    points: (each.learning?.entries ?? []).filter(entry => known(entry[key])).map(entry => [entry.step, entry[key]]) });
  const same = peers(report, run).filter(({ each }) => each.learning?.metric === run.learning?.metric);
  const [loss, value] = ["loss", "value"].map(key => same.map(line(key)).filter(series => series.points.length));
  if (!loss.length && !value.length) return h("section", h("h2", "Learning"), h("p.empty", "This run kept no history."));
  const metric = figureName(run.learning.metric);
  const steps = rangeOf([...loss, ...value].flatMap(series => series.points.map(point => point[0])), 0);
  const chart = (title, note, name, series) => series.length
    ? lineChart({ title, note, x: { name: "step", digits: 0, range: steps }, y: { name }, series }) : null;
  return h("section", h("h2", "Learning"), h("div.columns.charts",
    chart("Loss", "On the examples that it learns from. Less is better.", "loss", loss),
    chart(`${metric} on validation`, "On encounters that it does not learn from. The best model of these steps is kept.", metric, value)));
}

function curves(report, run) {
  if (!run.curves.length) {
    return h("section", h("h2", "Curves"), h("p.empty", guesses(run)
      ? "A guess among many codes has no curve of precision and recall." : run.asks === "next"
        ? "Diagnoses of the next visit are ranked: how many of them are found is told above." : report.min_cell > 1
        ? "Too few encounters have one of the two answers for curves to be shown." : "There are no curves for this run."));
  }
  const place = h("div.columns.charts");
  const draw = name => {
    const lines = peers(report, run).flatMap(peer => {
      const curve = peer.each.curves.find(each => each.name === name);
      return curve ? [{ ...peer, curve }] : [];
    });
    const own = run.curves.find(each => each.name === name);
    const series = key => lines.map(({ each, look, strong, curve }) => ({ name: each.name, look, strong, points: curve[key] }));
    const hasOutcome = outcomeOf(run, name) !== null;
    place.replaceChildren(
      lineChart({ title: "Precision and recall",
        note: "Of the pairs or cases that it calls true, how many are (precision); of the true ones, how many it finds (recall). " +
          `Guessing has a precision of ${figure(own.prevalence, 3)}.`,
        x: { name: "recall", range: [0, 1] }, y: { name: "precision", range: [0, 1] }, series: series("precision_recall") }),
      lineChart({ title: "ROC", note: "True ones found, against false ones called true, as the threshold falls.",
        x: { name: "false positive rate", range: [0, 1] }, y: { name: "true positive rate", range: [0, 1] },
        series: series("roc"), diagonal: "guessing" }),
      hasOutcome ? "" : calibrationChart(run, report, own.calibration ?? [], own.calibration ?? []));
  };
  const select = h("select", { change: () => draw(select.value) }, run.curves.map(curve => h("option", { value: curve.name }, clean(curve.name))));
  draw(run.curves[0].name);
  return h("section", h("h2", "Curves"), run.curves.length > 1 ? h("p", h("label", "Curves of ", select)) : null, place);
}

/** What is set differently between runs. */
function settings(report) {
  const maps = report.runs.map(run => new Map(run.settings));
  const names = [...new Set(report.runs.flatMap(run => run.settings.map(([name]) => name)))];
  if (maps.length < 2) return h("section", h("h2", "Settings"), settingsTable("Settings of the run", report.runs, names));
  const different = names.filter(name => new Set(maps.map(map => map.get(name))).size > 1);
  return h("section", h("h2", "Settings"), different.length ? settingsTable("What differs between the runs", report.runs, different)
    : h("p.muted", "All runs have the same settings."),
  different.length < names.length ? h("details", h("summary", `${names.length - different.length} settings that are the same`),
    settingsTable("The same in all runs", report.runs.slice(0, 1), names.filter(name => !different.includes(name)), "all runs")) : null);
}

function settingsTable(caption, runs, names, heading) {
  const maps = runs.map(run => new Map(run.settings));
  return table(caption, [
    { name: "setting", cell: name => h("code", clean(name)) },
    ...runs.map((run, place) => ({ name: heading ?? clean(run.name), cell: name => h("bdi", clean(maps[place].get(name) ?? DASH)) })),
  ], names, { class: "settings" });
}
