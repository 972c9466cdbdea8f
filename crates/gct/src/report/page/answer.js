// The answer about one encounter, and what a reader asks next: what it means, why, what was in the encounter, and how good such answers are.

/** The name of what was answered: a label, a diagnosis, or two codes that are connected; as mere text for places that take nothing else. */
function answerName(view, run, answer, bare = false) {
  if (run.asks === "labels") return bare ? clean(answer.what) : h("bdi", clean(answer.what));
  const say = node => bare ? titleOf(node.code, node.description) : labelledNode(node);
  const ofCode = code => view.nodes.find(node => node.code === code) ?? diagnosisOf(run, code);
  const parts = answer.what.split(" - ");
  for (let at = 1; run.asks === "pairs" && at < parts.length; at++) {
    const ends = [parts.slice(0, at), parts.slice(at)].map(side => view.nodes.find(node => node.code === side.join(" - ")));
    if (ends.every(Boolean)) return bare ? ends.map(say).join(" with ") : [say(ends[0]), h("span.muted", " with "), say(ends[1])];
  }
  return say(ofCode(answer.what) ?? { code: answer.what, description: null });
}

/** A diagnosis of the run by its code; where a code of any kind was hidden, a code. */
function diagnosisOf(run, code) {
  const index = run.codes.code.findIndex((each, at) => each === code && (run.asks === "code" || run.codes.kind[at] === 1));
  return index < 0 ? null : codeOf(run, index);
}

/** What the model says, and what is true. */
function answerPart(view, run, what) {
  if (!view.answers.length) {
    return part("answer", "The answer", h("p.muted", run.asks === "pairs" ? "The model finds no connected pair of codes." : "The model gives no answer."));
  }
  if (run.asks === "labels") return labelPart(view, run, what);
  if (run.asks === "next") return nextPart(view, run);
  const title = { pairs: "The pairs of codes that the model takes for connected", diagnosis: "Which diagnosis was hidden", code: "Which code was hidden" }[run.asks] ?? "The answer";
  const heading = { pairs: "pair", diagnosis: "guess", code: "guess" }[run.asks] ?? "answer";
  const rows = (from, to) => table("What the model says", [
    { name: heading, cell: answer => answerName(view, run, answer) },
    { name: "probability", number: true, cell: answer => [bar(answer.probability), chance(answer.probability)] },
    { name: run.asks === "pairs" ? "truly connected" : "truth", cell: answer => truthWord(run, answer) },
  ], view.answers.slice(from, to), { class: "answers untitled" });
  const few = 5;
  return part("answer", title, rows(0, few), view.answers.length > few && h("details", h("summary", `${view.answers.length - few} more`), rows(few)));
}

/** The diagnoses of the next visit: those that the model finds most probable, which of them it has, and which it has beside them. */
function nextPart(view, run) {
  const { answers } = view;
  const isKnown = answers.some(answer => typeof answer.truth === "boolean");
  const found = answers.filter(answer => answer.truth).length;
  const missed = (view.next ?? []).filter(({ code }) => !answers.some(answer => answer.what === code));
  const news = isNew(run) ? "new " : "";
  const ranked = answers.map((answer, at) => ({ ...answer, rank: at + 1 }));
  const outcome = !isKnown ? h("p.muted", "Which diagnoses the next visit has is not known here.")
    : view.next ? h("p", `The next visit has ${integer(view.next.length)} ${news}${view.next.length === 1 ? "diagnosis" : "diagnoses"}; `,
      h("strong", `${integer(found)} of ${view.next.length === 1 ? "it" : "them"} ${found === 1 ? "is" : "are"} among these ${integer(answers.length)}`), ".")
      : h("p", h("strong", `${integer(found)} of these ${integer(answers.length)} ${found === 1 ? "is" : "are"} in the next visit`), ".");
  return part("answer", `The most probable ${news}diagnoses of the next visit`, outcome, table("What the model says", [
    { name: "diagnosis", cell: answer => [h("span.muted.rank", `${answer.rank}`), answerName(view, run, answer)] },
    { name: "probability", number: true, cell: answer => [bar(answer.probability), chance(answer.probability)] },
    ...isKnown ? [{ name: "in the next visit", cell: answer => answer.truth ? h("span.right", "● yes") : h("span.muted", "no") }] : [],
  ], ranked, { class: "answers untitled" }),
  missed.length > 0 && h("p.missed", "In the next visit, and not among these: ", missed.map((node, at) => [at ? ", " : "", named(node.code, node.description)]), "."));
}

/** Whether only diagnoses are predicted that the patient did not have before. */
const isNew = run => clean(run.task) === "next_diagnoses:new";

/** The truth beside an answer: plain, and marked only where the two disagree. */
function truthWord(run, { truth, what, probability }) {
  if (typeof truth !== "boolean") return h("span.muted", "not known");
  if (run.asks === "pairs") return truth ? "yes" : h("span.wrong", "≠ no");
  if (guesses(run)) return truth ? "right" : "no";
  const word = truth ? "yes" : "no";
  if (!disagrees(run, { truth, what, probability })) return word;
  return h("span.wrong", `≠ ${word}, ${truth ? "missed" : "a false alert"}`);
}

/** A label: its probability, and what that means at the threshold. */
function labelPart(view, run, what) {
  const answer = view.answers.find(each => each.what === what) ?? view.answers[0];
  const outcome = outcomeOf(run, answer.what);
  const row = operatingOf(outcome);
  const alert = isAlert(outcome, answer.probability);
  const verdict = alert === null ? null : h(`span.verdict${alert ? ".alert" : ""}`, alert ? "above" : "below", ` the threshold of ${chance(row.threshold)}: `,
    alert ? "an alert" : "no alert");
  const times = known(answer.probability) && known(outcome?.prevalence) && outcome.prevalence > 0 ? answer.probability / outcome.prevalence : null;
  return part("answer", "The answer",
    h("p.label-name", h("bdi", clean(answer.what))),
    h("p.big", h("strong", chance(answer.probability)), verdict),
    riskScale(answer, outcome),
    known(times) && h("p", `${timesWord(times)} the average of the ${partName(run)} (${chance(outcome.prevalence)}).`),
    row ? meaning(row, alert) : h("p.muted", outcome && !outcome.thresholds?.length ? "What a threshold means is not shown here: counts of few encounters could be had from it."
      : "No threshold was chosen for this run, so the probability stands alone."),
    typeof answer.truth === "boolean" && h("p.truth", "What happened: ", truthWord(run, answer), "."));
}

function timesWord(times) {
  if (times >= 0.9 && times <= 1.1) return "About";
  if (times < 0.1) return "Less than a tenth of";
  return `${times >= 10 ? integer(Math.round(times)) : times.toFixed(1)} times`;
}

/** What the threshold does, in numbers of encounters. */
function meaning(row, alert) {
  const thousand = value => known(value) ? integer(Math.round(1000 * value)) : DASH;
  const ends = (values, complement) => {
    if (!values?.every(known)) return "";
    const [low, high] = complement ? [1 - values[1], 1 - values[0]] : values;
    return ` (95\u00a0% interval ${thousand(low)} to ${thousand(high)})`;
  };
  const alerts = known(row.alerts_per_1000) ? `Of 1,000 encounters ${integer(Math.round(row.alerts_per_1000))} get an alert. ` : "";
  const right = alert
    ? known(row.ppv) && ["Of 1,000 such alerts ", h("strong", `${thousand(row.ppv)} are right`), `${ends(row.ppv_interval)}. `]
    : known(row.npv) && ["Of 1,000 encounters without an alert ", h("strong", `${thousand(1 - row.npv)} have it nevertheless`), `${ends(row.npv_interval, true)}. `];
  const finds = known(row.sensitivity) ? `Alerts find ${chance(row.sensitivity)} of those that have it. ` : "";
  return h("p.meaning", alerts, right, finds, h("span.muted", `The threshold was chosen on validation: ${aimInWords(row.chosen_for)}.`));
}

/** The probability among thresholds and averages, on a scale that has room for what is rare. */
function riskScale(answer, outcome) {
  const ends = [0.0005, 0.9995].map(logOdds);
  const marks = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999];
  const threshold = operatingOf(outcome)?.threshold;
  const drawing = sized("div.risk", width => {
    const [left, right, line] = [14, width - 14, 16];
    const at = p => left + (Math.min(ends[1], Math.max(ends[0], logOdds(p))) - ends[0]) / (ends[1] - ends[0]) * (right - left);
    const shown = width < 420 ? marks.filter((_, i) => i % 2) : marks;
    return s("svg.risk-scale", { viewBox: `0 0 ${width} 44`, width, height: 44, role: "img", "aria-label": `${chance(answer.probability)}${
      known(threshold) ? `, threshold ${chance(threshold)}` : ""}${known(outcome?.prevalence) ? `, average ${chance(outcome.prevalence)}` : ""}` },
    s("path.track", { d: `M${left} ${line}H${right}` }),
    known(threshold) && s("path.track.alert", { d: `M${at(threshold)} ${line}H${right}` }),
    shown.map(p => [s("path.tick", { d: `M${at(p)} ${line + 5}v4` }), s("text", { x: at(p), y: line + 22, "text-anchor": "middle" }, `${100 * p}${PERCENT}`)]),
    known(outcome?.prevalence) && outcome.prevalence > 0 && s("path.average", { d: `M${at(outcome.prevalence)} ${line - 5}l5 5l-5 5l-5 -5z` }),
    known(threshold) && s("path.threshold", { d: `M${at(threshold)} ${line - 12}V${line + 10}` }),
    s("circle.here", { cx: at(answer.probability), cy: line, r: 7 }));
  });
  const key = (shape, text) => h("li", h("span.swatch", s("svg", { width: 14, height: 14, "aria-hidden": "true" }, shape)), text);
  return h("figure", drawing, h("ul.legend",
    key(s("circle.here", { cx: 7, cy: 7, r: 6 }), "this encounter"),
    known(threshold) && key(s("path.threshold", { d: "M7 0V14" }), `threshold ${chance(threshold)}`),
    known(outcome?.prevalence) && key(s("path.average", { d: "M7 2l5 5l-5 5l-5 -5z" }), `average ${chance(outcome.prevalence)}`)));
}

const logOdds = p => Math.log(p / (1 - p));

/** How the answer would change without each code: what it rests on. `heard` is told which of several answers is explained. */
function whyPart(view, run, what, heard) {
  const all = run.asks === "labels" ? view.attributions.filter(each => each.what === what) : view.attributions;
  if (!all.length) {
    heard(null);
    return run.asks === "pairs" ? null : part("why", "Why", h("p.muted", "What the answer would be without each code is not in this report."));
  }
  const place = h("div");
  const draw = own => {
    place.replaceChildren(...reasons(own, view.visits?.length > 0));
    heard(own);
  };
  const select = h("select", { change: () => draw(all[Number(select.value)]) },
    all.map((each, at) => h("option", { value: at }, `${shortened(answerName(view, run, each, true), 14, 420)}: ${chance(each.probability)}`)));
  draw(all[0]);
  return part("why", "Why", all.length > 1 ? h("p.controls", h("label", "Of the answer ", select)) : null, place);
}

/** What one answer rests on: codes of the encounter, and with history those of earlier visits. */
function reasons(own, hasHistory) {
  const changes = own.changes.filter(change => known(change.log_odds_change));
  if (!changes.length) return [h("p.muted", "There is no code that could be left out.")];
  const most = Math.max(1, ...changes.map(change => Math.abs(change.log_odds_change)));
  const first = changes[0];
  const lead = Math.abs(first.log_odds_change) < 0.1
    ? "No single code changes the answer much: it rests on many together, or on how common it is."
    : ["Without ", h("strong", named(first.code, first.description)), first.visits_before > 0 && ` of ${visitsBefore(first.visits_before)}`, ` it would be ${chance(first.without)} instead of ${chance(own.probability)}`,
      chance(first.without) === chance(own.probability) && `, though its odds would be ${timesOdds(first.log_odds_change)}`, "."];
  const rows = (from, to) => table("The answer without each code", [
    { name: "without", cell: change => [h("bdi", titleOf(change.code, change.description)),
      h("span.muted.what", hasTitle(change.code, change.description) && [h("bdi", clean(change.code)), " · "], KINDS[change.kind],
        change.visits_before > 0 && ` · ${visitsBefore(change.visits_before)}`)] },
    { name: h("span.sides", h("span", h("span.wordy", "speaks "), "against"), h("span", h("span.wordy", "speaks "), "for")), cell: change => pull(-change.log_odds_change / most) },
    { name: "the answer would be", number: true, cell: change => chance(change.without) },
  ], changes.slice(from, to), { class: "changes untitled" });
  const few = 8;
  return [h("p", lead), rows(0, few), ...changes.length > few ? [h("details", h("summary", `${changes.length - few} more codes`), rows(few))] : [],
    h("p.muted", `Each line asks the model again about the same encounter${hasHistory ? " and the visits before it" : ""} without this one code${
      hasHistory ? " of one visit" : ""}; bars are changes of the log-odds. Codes that can stand `,
      `in for each other${hasHistory ? ", such as the same one in several visits," : ""} each show little. This is what the answer rests on, not what causes the outcome.`)];
}

function timesOdds(change) {
  const factor = Math.exp(Math.min(20, Math.abs(change)));
  return `${factor >= 10 ? integer(Math.round(factor)) : factor.toFixed(1)} times ${change < 0 ? "smaller" : "larger"}`;
}

/** A bar to the left or to the right of a middle. */
function pull(portion) {
  const inner = h(portion < 0 ? "span.against" : "span.for");
  inner.style.width = `${50 * Math.min(1, Math.abs(portion))}%`;
  return h("span.pull", { "aria-hidden": "true" }, inner);
}

/** A plain list of the codes, by kind. */
function contentsPart(view) {
  const nodes = view.nodes.map((node, place) => ({ ...node, isHidden: place === view.hidden })).slice(1);
  const item = node => h("li", labelledNode(node), node.isHidden && h("span.muted", " hidden from the model"));
  return part("contents", "What was in the encounter", nodes.length ? codesByKind(nodes, item) : h("p.muted", "No code that the model knows."));
}

/** Codes in a list for each kind, the first ones of many in sight. */
function codesByKind(nodes, item) {
  const few = 12;
  return h("div.columns.kinds", IN_ORDER.filter(kind => kind).map(kind => {
    const own = nodes.filter(node => node.kind === kind);
    if (!own.length) return null;
    return h("div", h("h4", `${HEADINGS[kind][0].toUpperCase()}${HEADINGS[kind].slice(1)} (${own.length})`), h("ul.codes", own.slice(0, few).map(item)),
      own.length > few && h("details", h("summary", `${own.length - few} more`), h("ul.codes", own.slice(few).map(item))));
  }));
}

/** How good such answers are: of encounters with about the same probability, and of the groups that this one belongs to. */
function alikePart(view, run, report, what) {
  if (run.asks !== "labels") return null;
  const answer = view.answers.find(each => each.what === what) ?? view.answers[0];
  const outcome = answer && outcomeOf(run, answer.what);
  if (!outcome) return null;
  const bin = binOf(binsOf(run, outcome), answer.probability);
  const own = new Set(view.nodes.filter(node => node.kind === 4).map(node => node.code));
  const groups = (run.subgroups ?? []).filter(row => (!row.label || row.label === answer.what) && own.has(`${row.by}=${row.group}`));
  return part("alike", "How the model does on patients like this one", likely(bin, run, report),
    groups.length ? subgroupTable("Groups that this patient belongs to", groups, report, false)
      : h("p.muted", (run.subgroups ?? []).length ? "It belongs to none of the groups that were evaluated." : "No groups of patients were evaluated apart."));
}

/** The bin of a probability. Bins need not touch each other: what lies between two belongs to the nearer one. */
function binOf(bins, probability) {
  const distance = bin => Math.max(bin.low - probability, probability - bin.high, 0);
  return bins.reduce((best, bin) => best === null || distance(bin) < distance(best) || (distance(bin) === 0 && bin.low === probability) ? bin : best, null);
}

function likely(bin, run, report) {
  if (!bin) return null;
  const range = `between ${chance(bin.low)} and ${chance(bin.high)}`;
  if (!known(bin.count)) return h("p", `How often it happened at a probability ${range} is not shown: counts below ${report.min_cell} are hidden.`);
  if (!bin.count) return h("p", `No encounter of the ${partName(run)} got a probability ${range}.`);
  const happened = Math.round(bin.count * bin.happened);
  return h("p", `Of the ${integer(bin.count)} encounters of the ${partName(run)} with a probability ${range}, `, h("strong", `${integer(happened)} had it: ${chance(bin.happened)}`),
    chances(bin.happened_interval) && ` (95\u00a0% interval ${chances(bin.happened_interval)})`, `. The model said ${chance(bin.said)} on average.`,
    bin.count < 30 && h("span.muted", " So few encounters say little."));
}

const partName = run => run.part === "all" ? "data" : `${clean(run.part)} part`;
