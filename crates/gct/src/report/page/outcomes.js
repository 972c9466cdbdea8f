// How good the answers about a label are where they are used: at thresholds, by what they gain, and in groups of patients.

/** The tables and charts of the labels of a run; nothing for other questions. */
function outcomesSection(report, run) {
  const outcomes = run.outcomes ?? [];
  if (!outcomes.length) return null;
  const place = h("div");
  const draw = name => {
    const outcome = outcomeOf(run, name);
    place.replaceChildren(...[thresholds(outcome, report), h("div.columns.charts", calibrationChart(run, report, binsOf(run, outcome),
        run.curves.find(curve => curve.name === name)?.calibration ?? [], outcome.calibration),
      decisionCurve(outcome)), subgroups(run, report, name)].filter(Boolean));
  };
  const select = h("select", { change: () => draw(select.value) }, outcomes.map(outcome => h("option", { value: outcome.name }, clean(outcome.name))));
  draw(outcomes[0].name);
  return h("section.outcomes", h("h2", "In use"), outcomes.length > 1 ? h("p", h("label", "Label ", select)) : null, place);
}

/** What alerts at some thresholds are worth. */
function thresholds(outcome, report) {
  const { name, positives, encounters, prevalence } = outcome;
  const share = known(prevalence) ? `, ${chance(prevalence)}` : "";
  const about = h("p.muted", h("bdi", clean(name)), `: ${count(positives, report.min_cell)} of ${count(encounters, report.min_cell)} encounters have it${share}. `,
    "An alert is a probability above the threshold. Intervals hold 95 % of bootstrap replicates over subjects.");
  if (!outcome.thresholds?.length) return h("div", h("h3", "At a threshold"), about, h("p.muted", report.min_cell > 1 ? "What happens at thresholds is not shown: counts of few encounters could be had from it." : "No thresholds were evaluated."));
  const value = (row, key) => key === "alerts_per_1000" ? integer(known(row[key]) ? Math.round(row[key]) : null) : chance(row[key]);
  const ends = (row, key) => {
    const interval = row[`${key}_interval`];
    if (!interval?.every(known)) return null;
    return key === "alerts_per_1000" ? interval.map(end => integer(Math.round(end))).join(" to ") : chances(interval);
  };
  return h("div", h("h3", "At a threshold"), about, table("Alerts at thresholds", [
    { name: "threshold", cell: row => [chance(row.threshold), h("span.muted.what", row.chosen_for && `${aimInWords(row.chosen_for)}, chosen on validation`)] },
    ...AT_THRESHOLD.map(([key, name, meaning]) => ({ name: [name, h("span.muted.what", meaning)], number: true,
      cell: row => [value(row, key), ends(row, key) && h("span.muted.what", ends(row, key))] })),
  ], outcome.thresholds.map(row => ({ ...row, class: row === operatingOf(outcome) ? "chosen" : null })), { class: "thresholds untitled" }));
}

/** What was said beside what happened, bin by bin: points with intervals, since a bin can have few. */
function calibrationChart(run, report, bins, columns, calibration) {
  const shown = bins.filter(bin => known(bin.said) && known(bin.happened));
  const most = Math.max(1, ...columns.map(bin => bin.count ?? 0));
  const number = value => value.toFixed(2).replace("-", "−");
  const line = (name, value, interval) => known(value) && `${name} ${number(value)}${interval?.every(known) ? ` (${interval.map(number).join(" to ")})` : ""}`;
  const slope = [line("slope", calibration?.slope, calibration?.slope_interval), line("intercept", calibration?.intercept, calibration?.intercept_interval)].filter(Boolean);
  return lineChart({ title: "Calibration",
    note: `How often it happens when the model says so${shown.some(bin => bin.happened_interval?.every(known)) ? ", with 95\u00a0% intervals" : ""}. Grey bars: how many get which probability.${slope.length ? ` Calibration ${slope.join(", ")}; 1 and 0 are perfect.` : ""}`,
    x: { name: "the model says", range: [0, 1] }, y: { name: "it happens", range: [0, 1] }, diagonal: "perfect",
    series: [{ name: run.name, look: report.runs.indexOf(run) % 6, strong: true, points: shown.map(bin => [bin.said, bin.happened]), intervals: shown.map(bin => bin.happened_interval) }],
    bars: columns.map(bin => ({ low: bin.low, high: bin.high, share: 0.5 * (bin.count ?? 0) / most })),
    rows: () => table("Bins of the calibration", [
      { name: "probability", cell: bin => `${chance(bin.low)} to ${chance(bin.high)}` },
      { name: "encounters", number: true, cell: bin => count(bin.count, report.min_cell) },
      { name: "said", number: true, cell: bin => chance(bin.said) },
      { name: "happened", number: true, cell: bin => [chance(bin.happened), chances(bin.happened_interval) && h("span.muted.what", chances(bin.happened_interval))] },
    ], bins) });
}

/** What alerts gain over alerting everybody or nobody, by how many false alerts a true one is worth. */
function decisionCurve(outcome) {
  const points = (outcome.net_benefit ?? []).filter(point => known(point.model));
  if (!points.length) return null;
  const top = Math.max(...points.map(point => Math.max(point.model, point.treat_all ?? 0)));
  const end = roomFor(Math.max(0.02, points.findLast(point => point.model > 0.002 * top)?.threshold ?? 0.05));
  const inside = points.filter(point => point.threshold <= end);
  const low = -0.25 * top;
  const line = key => inside.filter(point => known(point[key]) && point[key] >= low).map(point => [point.threshold, point[key]]);
  return lineChart({ title: "Decision curve",
    note: "Net benefit: true alerts per encounter, less the false ones, weighted by the odds of the threshold. A model is of use where its line is above the two others.",
    x: { name: "threshold", range: [0, end] }, y: { name: "net benefit", range: [low, top * 1.05] },
    series: [{ name: "alert nobody", look: 5, plain: true, points: [[0, 0], [end, 0]] }, { name: "alert everybody", look: 1, plain: true, points: line("treat_all") },
      { name: "alert by the model", look: 0, strong: true, plain: true, points: line("model") }] });
}

/** The metrics of groups of patients, and how far each is from everybody else's. */
function subgroups(run, report, label) {
  const rows = (run.subgroups ?? []).filter(row => !row.label || row.label === label);
  if (!rows.length) return null;
  return h("div", h("h3", "Groups of patients"), subgroupTable("Groups of patients", rows, report, true));
}

function subgroupTable(caption, rows, report, grouped) {
  const named = [["auroc", "AUROC", figure], ["aucpr", "AUCPR", figure], ...AT_THRESHOLD.slice(0, 4).map(([key, name]) => [key, name, chance]),
    ["calibration_error", "calibration error", figure], ["calibration_slope", "calibration slope", (value, digits) => figure(value, 2)]];
  const metrics = named.filter(([key]) => rows.some(row => known(row[key])));
  const ends = (interval, word) => !interval?.every(known) ? null : word === chance ? chances(interval) : interval.map(end => signed(end)).join(" to ");
  const signed = value => figure(value, 3).replace("-", "−");
  const gap = (row, key) => known(row[`${key}_gap`]) && [`gap ${signed(row[`${key}_gap`])}`, ends(row[`${key}_gap_interval`])].map(line => line && h("span.muted.what", line));
  // A row that has a `group` of its own would be taken for a heading.
  const own = rows.map(({ group, ...row }) => ({ ...row, called: group }));
  const lines = grouped ? [...new Set(own.map(row => row.by))].flatMap(by => [{ group: h("bdi", words(by)) }, ...own.filter(row => row.by === by)]) : own;
  const hasGaps = rows.some(row => metrics.some(([key]) => known(row[`${key}_gap`])));
  return h("div", hasGaps && h("p.muted", "Below a metric: its 95 % interval, and the gap, by how much it is larger than that of all other encounters, with the interval of the gap."), table(caption, [
    { name: "group", cell: row => h("bdi", grouped ? clean(row.called) : `${words(row.by)}: ${clean(row.called)}`) },
    { name: "encounters", number: true, cell: row => fewOr(row.encounters, report.min_cell) },
    { name: "have it", number: true, cell: row => [fewOr(row.positives, report.min_cell), known(row.positives) && known(row.encounters) && row.encounters > 0 && h("span.muted.what", chance(row.positives / row.encounters))] },
    ...metrics.map(([key, name, word]) => ({ name, number: true, cell: row => [known(row[key]) ? word(row[key], 3) : DASH, ends(row[`${key}_interval`], word) && h("span.muted.what", ends(row[`${key}_interval`], word)), gap(row, key)] })),
  ], lines, { class: "subgroups untitled" }));
}
