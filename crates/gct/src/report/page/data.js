// The report, and what a model makes of one encounter: unpacked from the file, or fetched from the server.

const KINDS = ["visit", "diagnosis", "treatment", "lab", "context"];
const HEADINGS = ["visit", "diagnoses", "treatments", "labs", "context"];
/** The kinds in the order of lists and tables. Not all data have context. */
const IN_ORDER = [0, 4, 1, 2, 3];
const LOWER_IS_BETTER = new Set(["log_loss", "brier_score", "calibration_error"]);

const FIGURES = {
  aucpr: ["AUCPR", "Area under the curve of precision and recall. Guessing gives the share of true cases, 1 is perfect."],
  auroc: ["AUROC", "How often a true case gets a higher probability than a false one. Guessing gives 0.5."],
  accuracy: ["accuracy", "Share of right answers. A probability above one half is a yes; of guesses the best one counts."],
  ...Object.fromEntries([10, 20, 30].map(at => [`recall@${at}`, [`recall@${at}`, `Share of the diagnoses of the next visit that are among the ${at} most probable, the mean over encounters.`]])),
  log_loss: ["log loss", "Minus the logarithm of the probability that the truth was given, on average. Less is better."],
  brier_score: ["Brier score", "Squared distance between probability and truth, on average. Less is better."],
  calibration_error: ["calibration error", "How far probabilities are from what happens, on average. Less is better."],
};

/** What the metrics of a threshold are called, and what they mean. */
const AT_THRESHOLD = [
  ["sensitivity", "sensitivity", "of those that have it, how many get an alert"],
  ["specificity", "specificity", "of those that do not have it, how many get none"],
  ["ppv", "PPV", "of the alerts, how many are right"],
  ["npv", "NPV", "of those without an alert, how many do not have it"],
  ["alerts_per_1000", "alerts per 1,000", "of 1,000 encounters, how many get an alert"],
];

const ASKS = {
  pairs: "Which nodes of an encounter are connected?",
  labels: "Is the label of the visit true?",
  diagnosis: "Which diagnosis of the encounter was hidden?",
  code: "Which diagnosis, treatment or lab of the encounter was hidden?",
  next: "Which diagnoses does the next visit have?",
};

/** The report of the page; the server keeps the larger part of it until it is asked. */
async function readReport() {
  const embedded = JSON.parse(document.getElementById("report").textContent);
  return embedded.live ? { ...await request("page/report.json"), live: true } : embedded;
}

/** Sent with every request once it was typed in; gone with the page. */
let token = null;

/** JSON from the server. Asks the reader for a token where the server wants one; other errors are thrown, in words. */
async function request(path, body) {
  for (;;) {
    const headers = { ...(body && { "Content-Type": "application/json" }), ...(token && { Authorization: `Bearer ${token}` }) };
    let response;
    try {
      response = await fetch(path, { method: body ? "POST" : "GET", headers, body, cache: "no-store" });
    } catch {
      throw new Error("The server does not answer. Is it still running?");
    }
    if (response.status === 401) {
      token = await askForToken(token !== null);
      continue;
    }
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) return answer;
    if (!answer?.error) throw new Error(`The server answered with status ${response.status} and said no more.`);
    throw Object.assign(new Error(clean(answer.error)), { hint: answer.hint && clean(answer.hint) });
  }
}

/** The matrices of all encounters of a run, one after the other, and where each begins. Unpacked when first needed. */
const unpacked = new WeakMap();

function matricesOf(run) {
  if (!unpacked.has(run)) {
    let end = 0;
    const starts = run.encounters.map(encounter => {
      const start = end;
      end += run.layers.length * (encounter.codes.length + 1) ** 2;
      return start;
    });
    unpacked.set(run, gunzip(run.matrices).then(bytes => {
      if (bytes.length !== end) throw new Error(`The report is damaged: ${bytes.length} cells of matrices where ${end} belong.`);
      return { bytes, starts };
    }));
  }
  return unpacked.get(run);
}

async function gunzip(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A byte stands for the square of its share of 127: small attention needs the finer steps. */
const CELLS = Float32Array.from({ length: 128 }, (_, byte) => (byte / 127) ** 2);

/** The matrix of a layer. Probabilities are the same both ways, and only the upper half of them is in the file. */
function unpack(layer, bytes, n) {
  const matrix = Float32Array.from(bytes, byte => CELLS[byte]);
  if (layer.kind === "probability") {
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) matrix[i * n + j] = matrix[j * n + i];
  }
  return { ...layer, matrix };
}

/** One encounter as all views want it: nodes, layers with their matrices, true edges, answers. */
async function explanationOf(report, run, place) {
  const encounter = run.encounters[place];
  const about = { number: encounter.number, id: encounter.id, loss: encounter.loss, next: encounter.next?.map(code => codeOf(run, code)) };
  if (report.live) {
    const path = `page/runs/${report.runs.indexOf(run)}/encounters/${encounter.number}`;
    return { ...explained(await request(path)), ...about };
  }
  const nodes = [{ kind: 0, code: "visit", description: null }, ...encounter.codes.map(code => codeOf(run, code))];
  const cells = nodes.length ** 2;
  let layers = [];
  if (run.layers.length) {
    const { bytes, starts } = await matricesOf(run);
    layers = run.layers.map((layer, l) => {
      const start = starts[place] + l * cells;
      return unpack(layer, bytes.subarray(start, start + cells), nodes.length);
    });
  }
  const visits = encounter.visits?.map((visit, at) => ({ ...visit, visits_before: at + 1, codes: visit.codes.map(code => codeOf(run, code)) }));
  const seen = [encounter, ...encounter.visits ?? []];
  const attributions = (encounter.why ?? []).map(({ effects, ...each }) => ({ ...each, changes: each.changes.map(change => ({ ...change, ...codeOf(run, change.code) })),
    ...effects && { effects: new Map(effects.flatMap((own, back) => own.map((effect, at) => [effectKey(back, codeOf(run, seen[back].codes[at])), effect]))) } }));
  return { ...about, nodes, layers, attributions, edges: encounter.edges, hidden: encounter.hidden, answers: encounter.answers, unknown: [], ...visits && { visits } };
}

/** The same from an explanation of the server. */
function explained(explanation) {
  const nodes = explanation.nodes.map(node => ({ ...node, kind: KINDS.indexOf(node.kind) }));
  const layers = explanation.layers.map(layer => ({ ...layer, matrix: Float32Array.from(layer.matrix.flat(), cell => cell ?? 0) }));
  const numbered = each => ({ ...each, kind: KINDS.indexOf(each.kind) });
  const visits = explanation.visits?.map(visit => ({ ...visit, codes: visit.codes.map(numbered) }));
  const effects = changes => new Map(changes.map(each => [effectKey(each.visits_before, each), each.log_odds_change]));
  const attributions = (explanation.attributions ?? []).map(each => {
    const changes = each.changes.map(numbered);
    return { ...each, changes, ...visits && { effects: effects(changes) } };
  });
  return { ...explanation, nodes, layers, attributions, answers: explanation.answers ?? [], unknown: explanation.unknown ?? [], ...visits && { visits } };
}

function codeOf(run, code) {
  return { kind: run.codes.kind[code], code: run.codes.code[code], description: run.codes.description[code] };
}

/** Codes that contain this text, in themselves or in their description, as a set of their indexes. */
function matching(run, text) {
  const wanted = text.toLowerCase();
  const found = new Set();
  run.codes.code.forEach((code, index) => {
    if (code.toLowerCase().includes(wanted) || run.codes.description[index]?.toLowerCase().includes(wanted)) found.add(index);
  });
  return found;
}

/** Whether an edge between two nodes is hidden from the model: that the visit is connected with its diagnoses and its context is given. */
function isHiddenPair(view, a, b) {
  const kinds = [view.nodes[a].kind, view.nodes[b].kind].sort((x, y) => x - y);
  return kinds[1] - kinds[0] === 1 && kinds[0] > 0 && kinds[1] < 4;
}

/** The true edges of an encounter, each as one number. */
function truthOf(view) {
  const n = view.nodes.length;
  return new Set((view.edges ?? []).map(([a, b]) => Math.min(a, b) * n + Math.max(a, b)));
}

/**
 * Whether a layer names a pair: a probability of at least one half, or an end that gives the other at least what it gives to nodes of that
 * kind on average, where it gives anything. The rule of the pictures of `gct explain`.
 */
function namingOf(view, { matrix, kind }) {
  const n = view.nodes.length;
  const means = view.nodes.map((_, node) => {
    const [sums, counts] = [KINDS.map(() => 0), KINDS.map(() => 0)];
    for (let other = 0; other < n; other++) {
      const given = matrix[node * n + other];
      if (other === node || !(given > 0)) continue;
      sums[view.nodes[other].kind] += given;
      counts[view.nodes[other].kind]++;
    }
    return sums.map((sum, k) => sum / Math.max(1, counts[k]));
  });
  const enough = (from, to) => {
    const given = matrix[from * n + to];
    return given > 0 && given >= (kind === "probability" ? 0.5 : means[from][view.nodes[to].kind] * (1 - 1e-6));
  };
  return (a, b) => enough(a, b) || enough(b, a);
}

/**
 * What nodes give to each other in a layer, the strongest last: a link for each way, from the node that gives, never the larger or the mean
 * of both. Probabilities are the same both ways, and one link. A true edge that is hidden from the model is found if the layer names it, or
 * missed. What is under a hundredth of what its giver's favourite gets is too little to see.
 */
function linksOf(view, layer) {
  const n = view.nodes.length;
  const truth = truthOf(view);
  const links = [];
  const add = (from, to, strength, mark) => links.push({ from, to, strength, mark });
  if (!layer) {
    for (const edge of truth) add(Math.floor(edge / n), edge % n, 0.2, "found");
    return links;
  }
  const { matrix, kind } = layer;
  const names = namingOf(view, layer);
  const most = view.nodes.map((_, node) => view.nodes.reduce((top, _, other) => other === node ? top : Math.max(top, matrix[node * n + other] || 0), 0));
  for (let a = 0; a < n; a++) {
    for (let b = a + 1; b < n; b++) {
      const isTrue = truth.has(a * n + b) && isHiddenPair(view, a, b);
      const mark = !isTrue ? "other" : names(a, b) ? "found" : "missed";
      for (const [from, to] of kind === "probability" ? [[a, b]] : [[a, b], [b, a]]) {
        const given = known(matrix[from * n + to]) ? matrix[from * n + to] : 0;
        if (isTrue || (given > 0 && given >= 0.01 * most[from])) add(from, to, given, mark);
      }
    }
  }
  return links.sort((a, b) => a.strength - b.strength);
}

/** How well a layer names the true edges that are hidden from the model: of all pairs of codes that can be connected. */
function findingsOf(view, layer) {
  const n = view.nodes.length;
  const truth = truthOf(view);
  const names = namingOf(view, layer);
  const sums = { pairs: 0, edges: 0, named: 0, found: 0 };
  for (let a = 0; a < n; a++) {
    for (let b = a + 1; b < n; b++) {
      if (!isHiddenPair(view, a, b)) continue;
      const [isTrue, isNamed] = [truth.has(a * n + b), names(a, b)];
      sums.pairs++;
      sums.edges += isTrue;
      sums.named += isNamed;
      sums.found += isTrue && isNamed;
    }
  }
  return sums;
}

/** A bound for the width of lines and the colour of cells: attention is compared within a layer, a probability with 1. */
function strongestOf(layer, links) {
  return layer?.kind === "probability" || !layer ? 1 : links.reduce((most, link) => Math.max(most, link.strength), 0) || 1;
}

/** The layer that a view begins with: the answer, or else the last block, which is nearest to it. */
function defaultLayer(layers) {
  return layers.find(layer => layer.kind === "probability") ?? layers.findLast(layer => layer.kind === "attention") ?? layers.at(-1);
}

/** The facts about one label: its threshold, how good it is there, its calibration. */
const outcomeOf = (run, name) => run.outcomes?.find(outcome => outcome.name === name) ?? null;

/** The row of the thresholds at which alerts are given: the one that was chosen on validation. */
function operatingOf(outcome) {
  return outcome?.thresholds?.find(row => row.chosen_for) ?? null;
}

/** What a threshold was chosen for, in words: `sensitivity=0.8`. */
function aimInWords(aim) {
  const [name, value] = clean(aim).split("=");
  if (name === "alerts") return `at most ${value} alerts per 1,000`;
  return `${{ ppv: "PPV" }[name] ?? words(name)} of at least ${chance(Number(value))}`;
}

/** The bins of probabilities of a label: of about as many encounters each, or, where these are not told, of equal width. */
function binsOf(run, outcome) {
  const own = outcome?.calibration?.bins ?? [];
  return own.length ? own : run.curves.find(curve => curve.name === outcome?.name)?.calibration ?? [];
}

/** Whether a probability is an alert; null where no threshold was chosen. */
function isAlert(outcome, probability) {
  const row = operatingOf(outcome);
  return row && known(probability) ? probability > row.threshold : null;
}

/** Whether the answer is a guess of what was hidden. */
const guesses = run => run.asks === "diagnosis" || run.asks === "code";

/** Whether an answer and the truth disagree; null where one of them is not known. */
function disagrees(run, answer) {
  if (run.asks === "pairs" || run.asks === "next" || typeof answer?.truth !== "boolean") return null;
  if (guesses(run)) return answer.truth === false;
  const alert = isAlert(outcomeOf(run, answer.what), answer.probability);
  return alert === null ? null : alert !== answer.truth;
}
