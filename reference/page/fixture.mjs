// A report of the shape that the program writes, with runs of every kind, encounters of every size and hostile names.
import { gzipSync } from "node:zlib";

/** A small generator of random numbers, the same in every run (mulberry32). */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export const HOSTILE = [
  '<img src=x onerror="window.hacked=1">', '"quotes" & \'others\'', "\u202eשלום עולם\u202c", "x".repeat(300), "=cmd()", "</script><script>window.hacked=1</script>",
];
const SIZES = [10, 3, 42, 100, 150];
/** Names as long and as alike as those of ICD, drugs and LOINC. */
const WORDS = {
  D: ["Sepsis, unspecified organism", "Acute kidney failure with tubular necrosis", "Pneumonia", "Hypertensive heart and chronic kidney disease with heart failure and stage 1 through stage 4 chronic kidney disease",
    "Type 2 diabetes mellitus with diabetic polyneuropathy", "Type 2 diabetes mellitus with diabetic chronic kidney disease", "Type 2 diabetes mellitus with other diabetic kidney complication",
    "Chest pain", "Atherosclerotic heart disease of native coronary artery without angina pectoris"],
  T: ["Metoprolol tartrate 25 mg oral tablet", "Metoprolol tartrate 50 mg oral tablet", "Ventilation, mechanical", "Insulin lispro 100 units/mL injectable solution", "Furosemide 40 mg oral tablet", "Haemodialysis"],
  L: ["Glomerular filtration rate/1.73 sq M.predicted [Volume Rate/Area] in Serum, Plasma or Blood by Creatinine-based formula (CKD-EPI 2021)", "Potassium [Moles/volume] in Serum or Plasma",
    "Sodium [Moles/volume] in Serum or Plasma", "Erythrocyte mean corpuscular hemoglobin concentration [Mass/volume] by Automated count", "Leukocytes [#/volume] in Blood by Automated count"],
};
const CONTEXT = ["sex=female", "sex=male", "age=18-44", "age=45-64", "age=65-74", "age=75+", "bmi=1-of-3", "bmi=2-of-3", "bmi=3-of-3"];

function codesOf(random) {
  const codes = { kind: [], code: [], description: [], count: [] };
  [["D", 120], ["T", 150], ["L", 160]].forEach(([letter, many], kind) => {
    const words = WORDS[letter];
    for (let i = 0; i < many; i++) {
      codes.kind.push(kind + 1);
      codes.code.push(`${letter}_${Math.floor(random() * 90) + 10}${i}`);
      codes.description.push(i % 3 ? `${words[Math.floor(random() * words.length)]}${i < 2 * words.length ? "" : ` ${i}`}` : null);
      codes.count.push(i % 20 ? Math.floor(random() * 5000) + 10 : null);
    }
  });
  // Labs with values, in ranges; the last one is known without a value as well.
  [["up to 3.5"], ["over 3.5 to 5.1"], ["over 5.1"]].forEach(([range], i) => {
    codes.code[270 + 20 + i] = `K//${i + 1}-of-3`;
    codes.description[270 + 20 + i] = `Potassium, ${range}`;
  });
  HOSTILE.forEach((name, i) => { codes.code[i] = name; codes.description[i] = i % 2 ? name : null; });
  return codes;
}

/** Shares of the visit and the three kinds in so many codes. */
function splitOf(size) {
  const diagnoses = Math.max(1, Math.round(size * 0.22)), treatments = Math.max(1, Math.round(size * 0.33));
  return [diagnoses, treatments, size - diagnoses - treatments];
}

function encounterOf(random, codes, number, size, asks, edgesKnown, withContext) {
  const first = [0, 120, 270], many = [120, 150, 160];
  const context = withContext ? [430 + number % 2, 432 + number % 4] : [];
  const chosen = splitOf(size).map((wanted, kind) => {
    const set = new Set(number === 1 && kind === 0 ? [0, 3] : number === 3 && kind === 0 ? [1, 2, 4, 5] : []);
    while (set.size < wanted) set.add(first[kind] + Math.floor(random() * many[kind]));
    return [...set].slice(0, wanted);
  });
  const kinds = [0, ...context.map(() => 4), ...chosen.flatMap((list, kind) => list.map(() => kind + 1))];
  const own = [...context, ...chosen.flat()];
  const of = kind => kinds.flatMap((k, node) => k === kind ? [node] : []);
  const edges = [...of(1).map(node => [0, node]), ...of(2).map(node => [pick(of(1)), node]), ...of(3).map(node => [pick(of(2)), node])];
  function pick(list) { return list[Math.floor(random() * list.length)]; }
  const answer = (what, truth) => ({ what, probability: random(), truth });
  const name = node => node ? codes.code[own[node - 1]] : "visit";
  // Some are so improbable that only a small number says it.
  const risk = number === 3 ? 0.000007 : number === 1 ? 0.908 : random() ** 3;
  const answers = asks === "labels" ? [{ ...answer("d1_m1", random() < risk), probability: risk }, answer("readmission", null)]
    : asks === "diagnosis" ? [answer(codes.code[chosen[0][0]], true), answer("D_77", false), answer(HOSTILE[0], false)].sort((a, b) => b.probability - a.probability)
      : edges.filter(([a]) => a > 0).slice(0, 12).map(([a, b], i) => ({ what: `${name(a)} - ${name(b)}`, probability: 0.98 - i * 0.03, truth: i % 4 !== 3 }));
  return {
    number, ...(number % 2 ? { id: `E${number * 7}` } : {}), loss: number % 9 === 4 ? null : random() * 2, codes: own,
    chosen: [...number % 3 ? ["first"] : [], ...number % 3 === 0 ? ["risk"] : [], ...number % 5 === 1 ? ["loss"] : [], ...answers[0].truth && asks === "labels" ? ["positive"] : []],
    hidden: asks === "diagnosis" ? 1 : null, edges: edgesKnown ? edges : null, answers, why: asks === "pairs" ? [] : answers.slice(0, asks === "labels" ? 2 : 1).map(each => whyOf(random, own, each)), kinds, truth: edges,
  };
}

/** How an answer changes without each of the codes that matter most. */
function whyOf(random, codes, { what, probability }) {
  const odds = Math.log(probability / (1 - probability));
  const changes = codes.slice(0, 15).map((code, i) => {
    const change = i === 0 ? -6 : i === 1 ? -2.5 : (random() - 0.5) * 2 / i;
    const without = 1 / (1 + Math.exp(-(odds + change)));
    return { code, without, change: without - probability, log_odds_change: change };
  });
  return { what, probability, changes: changes.sort((a, b) => Math.abs(b.log_odds_change) - Math.abs(a.log_odds_change)) };
}

/** Days between visits: some of one day, one not known. */
const DAYS = [34, 1, 400, 0, 2100, null, 12];

/** Visits before an encounter, the latest first, and what an answer owes to each and to each of its codes. */
function historyOf(random, encounter) {
  const many = [2, 0, 7, 1, 3][encounter.number % 5];
  let days = 0;
  const visits = Array.from({ length: many }, (_, at) => {
    const size = at === 0 ? 30 : 2 + Math.floor(random() * 9);
    days += DAYS[at] ?? 0;
    return { days_before: DAYS[at] === null ? null : days, codes: [...new Set(Array.from({ length: size }, (_, i) => i < 2 ? encounter.codes[i] : Math.floor(random() * 430)))].sort((a, b) => a - b) };
  });
  const why = encounter.answers.map(({ what, probability }) => {
    const odds = Math.log(probability / (1 - probability));
    const without = change => 1 / (1 + Math.exp(-(odds + change)));
    const seen = [encounter, ...visits];
    const effects = seen.map(({ codes }, back) => codes.map((_, at) => back === 1 && at === 0 ? -3 : back === 2 && at === 1 ? 1.5 : (random() - 0.5) / (back + 1)));
    const changes = effects.flatMap((own, back) => own.map((change, at) => ({ visits_before: back, node: at + 1, code: seen[back].codes[at], without: without(change), log_odds_change: change })));
    const effect = visits.map((_, at) => { const change = [-2.4, 1.1, 0.001][at] ?? (random() - 0.5); return { visits_before: at + 1, without: without(change), log_odds_change: change }; });
    return { what, probability, all: changes.sort((a, b) => Math.abs(b.log_odds_change) - Math.abs(a.log_odds_change)), effects, visits: effect.sort((a, b) => Math.abs(b.log_odds_change) - Math.abs(a.log_odds_change)) };
  });
  return { visits, why };
}

/** The most probable diagnoses of the next visit, and those that it has: half of them among these, and two others. */
function nextOf(random, codes) {
  const ranked = Array.from({ length: 10 }, (_, i) => [3, 4, 5, 0][i] ?? 10 + 7 * i);
  const answers = ranked.map((code, i) => ({ what: codes.code[code], probability: 0.8 / (i + 1), truth: i % 3 === 1 }));
  return { answers, next: [...ranked.filter((_, i) => i % 3 === 1), 101, 102] };
}

/** What is known of a label where it is used. */
function outcomeOf(random, name, few) {
  const interval = value => [Math.max(0, value - 0.04), Math.min(1, value + 0.04)];
  const point = (threshold, chosen) => {
    const sensitivity = (1 - threshold) ** 1.5, specificity = 1 - 0.4 * (1 - threshold) ** 3, prevalence = 0.08;
    const alerts = prevalence * sensitivity + (1 - prevalence) * (1 - specificity);
    const ppv = prevalence * sensitivity / alerts, npv = (1 - prevalence) * specificity / (1 - alerts);
    return { threshold, ...chosen && { chosen_for: chosen }, sensitivity, sensitivity_interval: interval(sensitivity), specificity, specificity_interval: interval(specificity), ppv, ppv_interval: interval(ppv), npv, npv_interval: interval(npv),
      alerts_per_1000: 1000 * alerts, alerts_per_1000_interval: interval(alerts).map(end => 1000 * end) };
  };
  const bins = Array.from({ length: 10 }, (_, i) => {
    const count = few ? (i > 3 ? [7, 3, 1, 0, 5, 2][i - 4] : 400) : Math.round(3000 / (i + 1) ** 2);
    const happened = count ? Math.round(count * Math.min(1, Math.max(0, i / 10 + 0.05 + (random() - 0.5) * 0.2))) / count : null;
    return i === 7 ? { low: 0.7, high: 0.8, count: null, said: null, happened: null, happened_interval: null }
      : { low: i / 10, high: (i + 1) / 10, count, said: count ? i / 10 + 0.05 : null, happened, happened_interval: count ? [Math.max(0, happened - 0.5 / Math.sqrt(count)), Math.min(1, happened + 0.5 / Math.sqrt(count))] : null };
  });
  const net = Array.from({ length: 50 }, (_, i) => {
    const threshold = (i + 1) / 100;
    return { threshold, model: 0.055 * Math.exp(-4 * threshold), treat_all: 0.08 - 0.92 * threshold / (1 - threshold), treat_none: 0 };
  });
  return { name, encounters: 5047, positives: 404, prevalence: 0.08, thresholds: [point(0.05), point(0.5), point(0.22, "sensitivity=0.65"), point(0.31, "alerts=170")],
    calibration: { slope: 0.91, slope_interval: [0.84, 0.99], intercept: -0.12, intercept_interval: [-0.21, -0.02], bins }, net_benefit: net };
}

const subgroupsOf = () => [["sex", "female"], ["sex", "male"], ["age", "18-44"], ["age", "45-64"], ["age", "65-74"], ["age", "75+"]].map(([by, group], i) => ({
  by, group, label: "d1_m1", encounters: i === 2 ? null : 2500 - 300 * i, subjects: i === 2 ? null : 2000 - 200 * i, positives: i === 2 ? null : 200 - 20 * i,
  ...i === 2 ? {} : { auroc: 0.78 - i * 0.02, auroc_interval: [0.74 - i * 0.02, 0.82 - i * 0.02], auroc_gap: 0.031 - i * 0.02, auroc_gap_interval: [-0.009 - i * 0.02, 0.071 - i * 0.02], aucpr: 0.41, aucpr_interval: [0.37, 0.45], aucpr_gap: i === 1 ? null : 0.02, aucpr_gap_interval: null, sensitivity: 0.62, sensitivity_interval: [0.55, 0.69], ppv: 0.4, ppv_interval: [0.33, 0.47] },
}));

/** Attention that knows most of the true edges, in the neighbouring kinds alone (gct) or everywhere (transformer). */
function matrixOf(random, encounter, layer, masked) {
  const n = encounter.kinds.length;
  const cells = new Float64Array(n * n);
  const isTrue = new Set(encounter.truth.flatMap(([a, b]) => [a * n + b, b * n + a]));
  for (let i = 0; i < n; i++) {
    let sum = 0;
    for (let j = 0; j < n; j++) {
      const allowed = i === j || !masked || Math.abs(encounter.kinds[i] - encounter.kinds[j]) === 1;
      const weight = allowed ? random() ** 3 * 0.3 + (isTrue.has(i * n + j) && random() > 0.15 ? 1 : 0) + (i === j ? 0.3 : 0) : 0;
      cells[i * n + j] = weight;
      sum += weight;
    }
    if (layer.kind !== "probability") for (let j = 0; j < n; j++) cells[i * n + j] /= sum;
  }
  if (layer.kind === "probability") {
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) cells[i * n + j] = cells[j * n + i] = i === j ? 0 : Math.min(0.99, cells[j * n + i] * 0.9);
    }
  }
  return Uint8Array.from(cells, cell => Math.round(Math.sqrt(cell) * 127));
}

/** The matrix that the page will see: bytes made numbers again. */
const numbers = (bytes, n) => Array.from({ length: n }, (_, i) => Array.from(bytes.subarray(i * n, (i + 1) * n), byte => (byte / 127) ** 2));

function curveOf(random, name, skill) {
  const t = Array.from({ length: 100 }, (_, i) => i / 99);
  return {
    name, prevalence: 0.08, precision_recall: t.map(r => [r, Math.max(0.08, 1 - r ** skill)]), roc: t.map(x => [x, x ** (1 / (1 + skill))]),
    calibration: t.slice(0, 10).map((_, i) => i === 7 ? { low: 0.7, high: 0.8, count: null, said: null, happened: null }
      : { low: i / 10, high: (i + 1) / 10, count: Math.round(5000 / (i + 1) ** 2), said: i / 10 + 0.05, happened: i / 10 + 0.05 + (random() - 0.5) * 0.1 }),
  };
}

const BLOCKS = ["P", "block 2", "block 3"];
const layer = (name, kind) => ({ name, kind });

/** One run; `matrices` are also kept apart, for the server of the tests. */
function runOf(seed, { name, group, model, task, asks, layers, masked = false, edgesKnown = false, labels = [], part = "test", many = 12, few = false, figures, structure = null, curves = [], context = false, ceiling = [], history = null }) {
  const rng = random(seed);
  const codes = codesOf(rng);
  if (context) {
    CONTEXT.forEach((code, i) => { codes.kind.push(4); codes.code.push(code); codes.description.push(/bmi/.test(code) ? `Body mass index, ${["up to 24.1", "over 24.1 to 31", "over 31"][i - 6]}` : null); codes.count.push(2000); });
  }
  const encounters = Array.from({ length: many }, (_, i) => encounterOf(rng, codes, i + 1, i < SIZES.length ? SIZES[i] : 6 + Math.floor(rng() * 70), asks, edgesKnown, context));
  const matrices = encounters.map(encounter => layers.map(each => matrixOf(rng, encounter, each, masked)));
  // A diagnosis and a treatment or a treatment and a lab; attention has every third link the other way.
  const links = layers.length === 0 ? [] : Array.from({ length: 200 }, (_, i) => {
    const cause = [4, 3, 0][(i - 1) / 2] ?? (i % 2 ? Math.floor(rng() * 120) : 120 + Math.floor(rng() * 150)), effect = i % 2 ? 120 + Math.floor(rng() * 150) : 270 + Math.floor(rng() * 160);
    const [from, to] = asks !== "pairs" && i % 3 === 2 ? [effect, cause] : [cause, effect];
    return { from, to, encounters: i % 13 ? 5 + Math.floor(rng() * 90) : null, known: i % 13 ? (edgesKnown ? 5 : 0) : null, mean: 0.95 - i * 0.0045,
      low: i % 13 ? 0.9 - i * 0.0045 : null, high: i % 13 ? Math.min(1, 0.99 - i * 0.0045) : null, true: edgesKnown ? (i % 13 ? Math.floor(rng() * 5) : null) : null };
  });
  const bare = encounters.map(({ kinds, truth, ...encounter }) => {
    const asked = asks === "next" ? { ...encounter, ...nextOf(rng, codes) } : encounter;
    if (!history) return asks === "next" ? { ...asked, why: asked.answers.map(each => whyOf(rng, asked.codes, each)) } : asked;
    return { ...asked, ...historyOf(rng, asked) };
  });
  // The last code is so rare that it is not on the map.
  const mapped = codes.code.length - 1, onMap = value => codes.code.map((_, i) => i < mapped ? value(i) : null);
  const neighbours = codes.code.map((_, i) => i < mapped ? Array.from({ length: 10 }, (_, k) => (i * 7 + k * 13 + 1) % mapped) : []);
  const entries = Array.from({ length: 8 }, (_, i) => ({ step: 500 * (i + 1), loss: 0.6 / (1 + i * 0.3) + seed * 0.01, value: i === 0 ? null : 0.3 + 0.1 * Math.log(i + 1) + seed * 0.01 }));
  return {
    matrices,
    run: {
      name, group, model, task, asks, part, ...history && { history },
      program: "gct 0.1.0", ceiling, calibrated: asks === "labels" ? "platt" : null,
      outcomes: asks === "labels" ? labels.map((label, i) => outcomeOf(rng, label.name, i === 1)) : [], subgroups: asks === "labels" ? subgroupsOf() : [],
      data: { source: "synthetic", sha256: "3fa1".repeat(16), encounters: 50000, training: 39855, asked: few ? null : 5047, left_out: few ? null : asks === "diagnosis" ? 12 : 0, learned_from: few ? null : asks === "diagnosis" ? 34 : 0, warning: few ? "the run learned from some of these subjects: the metrics are too good" : null, codes: { diagnosis: 120, treatment: 150, lab: 160 } },
      settings: [["learning_rate", model === "gct" ? "0.003" : "0.001"], ["batch", "32"], ["model.blocks", layers.length ? "3" : "0"], ["model.width", "128"], ["task", task]],
      steps: 4000, seconds: 812.4, figures, labels, learning: { metric: { diagnosis: "accuracy", next: "recall@20" }[asks] ?? "aucpr", entries }, curves: curves.map((curve, i) => curveOf(rng, curve, 2 + i)),
      codes, layers, encounters: bare, matrices: layers.length ? gzipSync(Buffer.concat(matrices.flat().map(bytes => Buffer.from(bytes)))).toString("base64") : null,
      structure, links: links.sort((a, b) => b.mean - a.mean),
      map: layers.length === 0 ? null : { x: onMap(i => codes.kind[i] * 0.6 + rng() + rng()), y: onMap(() => rng() + rng() - 1), explained: [0.21, 0.08],
        neighbours, similarity: neighbours.map(list => list.map((_, k) => 0.95 - k * 0.04)) },
    },
  };
}

const figures = base => [["aucpr", base], ["auroc", base + 0.35], ["accuracy", 0.93], ["log_loss", 0.21], ["brier_score", 0.07], ["calibration_error", null]]
  .map(([name, value]) => ({ name, value, low: value && value - 0.011, high: value && value + 0.012 }));
const structure = add => ({ blocks: BLOCKS, kl_attention_truth: [12.1 + add, 10.3 + add, 9.7 + add], kl_truth_attention: [1.9, 1.4, 1.2], entropy: [2.1, 2.0, 1.98 + add / 10], edges_aucpr: [0.33, 0.41, null], encounters: 5047 });
const attention = BLOCKS.map((name, i) => layer(name, i ? "attention" : "prior"));

/** The whole report, and the matrices by run, encounter and layer. */
export function fixture({ many = 12, minCell = 11 } = {}) {
  const made = [
    runOf(1, { name: "gct", group: 0, model: "gct", task: "graph_reconstruction", asks: "pairs", layers: [...attention, layer("answer", "probability")], masked: true, edgesKnown: true, many, figures: figures(0.4913), structure: structure(0), curves: ["all pairs"], ceiling: [{ figure: "aucpr", value: 0.814 }] }),
    runOf(2, { name: "transformer", group: 1, model: "transformer", task: "label:d1_m1", asks: "labels", context: true, layers: ["block 1", "block 2", "block 3"].map(name => layer(name, "attention")), many, figures: figures(0.38),
      labels: [{ name: "d1_m1", figures: figures(0.41).slice(0, 2) }, { name: "readmission", figures: figures(0.3).slice(0, 2) }], curves: ["d1_m1", "readmission"] }),
    runOf(3, { name: "masked diagnosis with a long name", group: 2, model: "gct", task: "masked_diagnosis", asks: "diagnosis", layers: attention, masked: true, edgesKnown: true, many, structure: structure(1),
      figures: [{ name: "accuracy", value: 0.2112, low: 0.2, high: 0.22 }, { name: "log_loss", value: 4.1, low: 4.0, high: 4.2 }] }),
    runOf(4, { name: "shallow", group: 0, model: "shallow", task: "graph_reconstruction", asks: "pairs", layers: [], edgesKnown: true, many: 5, figures: figures(0.4), curves: ["all pairs"] }),
    runOf(5, { name: "empty", group: 3, part: "all", model: "gcn", task: "graph_reconstruction", asks: "pairs", layers: attention, many: 0, few: true, figures: figures(0.45).map(entry => ({ ...entry, low: null, high: null })), curves: ["all pairs"] }),
  ];
  const paper = [["gct", 0.5965, 0.0031], ["transformer", 0.5752, 0.0015], ["shallow", 0.5441, 0.0017]].flatMap(([model, value, deviation]) => [
    { group: 0, model, figure: "aucpr", value, deviation }, { group: 0, model, figure: "auroc", value: value + 0.3, deviation: 0.0013 }]);
  return { report: { format: 3, program: "gct 0.1.0", made: { date: "2026-11-18", command: "gct report runs/gct runs/transformer" }, live: false, paper, min_cell: minCell, runs: made.map(each => each.run) }, matrices: made.map(each => each.matrices) };
}

/** Runs that see earlier visits, and runs that predict the next one. */
export function fixtureOfHistory() {
  const gru = { aggregator: "gru", visits: 8, days: null, order: "time" };
  const layers = ["block 1", "block 2"].map(name => layer(name, "attention"));
  const recall = [["recall@10", 0.31], ["recall@20", 0.44], ["recall@30", 0.52], ["aucpr", 0.21], ["log_loss", 0.043]].map(([name, value]) => ({ name, value, low: value - 0.01, high: value + 0.01 }));
  const made = [
    runOf(6, { name: "gru", group: 0, model: "transformer", task: "labels:later,readmission", asks: "labels", context: true, layers, figures: figures(0.38), history: gru,
      labels: [{ name: "d1_m1", figures: figures(0.41).slice(0, 2) }, { name: "readmission", figures: figures(0.3).slice(0, 2) }], curves: ["d1_m1", "readmission"] }),
    runOf(7, { name: "next", group: 1, model: "transformer", task: "next_diagnoses", asks: "next", layers, figures: recall, history: { ...gru, days: 365 } }),
    runOf(8, { name: "new", group: 2, model: "transformer", task: "next_diagnoses:new", asks: "next", layers, figures: recall }),
  ];
  const runs = made.map(({ run }) => ({ ...run, encounters: run.encounters.map(({ why, ...encounter }) => ({ ...encounter, why: why.map(({ all, ...each }) => all ? { ...each, changes: all.slice(0, 15).map(({ node, ...change }) => change) } : each) })) }));
  const whole = made.map(({ run }) => run.encounters);
  return { report: { format: 3, program: "gct 0.1.0", made: { date: "2026-11-18", command: "gct report runs/gru" }, live: false, paper: [], min_cell: 0, runs }, matrices: made.map(each => each.matrices), whole };
}

/** What the server says of one encounter, from the same report. */
export function explanation({ report, matrices, whole }, run, place) {
  const { codes, layers } = report.runs[run];
  const { codes: own, edges, hidden, answers, why, visits } = (whole?.[run] ?? report.runs[run].encounters)[place];
  const kinds = ["visit", "diagnosis", "treatment", "lab", "context"];
  const code = index => ({ kind: kinds[codes.kind[index]], code: codes.code[index], description: codes.description[index] });
  return {
    nodes: [{ kind: "visit", code: "visit", description: null }, ...own.map(code)],
    attributions: why.map(({ all, effects, ...each }) => ({ ...each, changes: (all ?? each.changes).map(change => ({ ...change, ...code(change.code) })) })),
    ...visits && { visits: visits.map((visit, at) => ({ visits_before: at + 1, days_before: visit.days_before, codes: visit.codes.map(code) })) },
    layers: layers.map((each, l) => ({ ...each, matrix: numbers(matrices[run][place][l], own.length + 1) })), edges, hidden, answers, unknown: [],
  };
}
