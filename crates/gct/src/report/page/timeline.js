// The visits of a patient in the order of time: when each was, what the answer owes to it, and what was in it. Only of runs that see history.

/** How many visits before the encounter that is asked about. */
const visitsBefore = back => back === 1 ? "1 visit before" : `${integer(back)} visits before`;

/** When a visit was, seen from the encounter that is asked about; where that is not known, its place in the order. */
function timeOf({ visits_before: back, days_before: days }) {
  if (!back) return "this encounter";
  if (!known(days)) return visitsBefore(back);
  if (days < 1) return "less than a day before";
  return Math.floor(days) === 1 ? "1 day before" : `${integer(Math.floor(days))} days before`;
}

/** The visits of a view, the oldest first and the encounter that is asked about last. */
function visitsOf(view) {
  const own = { visits_before: 0, codes: view.nodes.slice(1) };
  return [...view.visits ?? [], own].sort((a, b) => b.visits_before - a.visits_before);
}

/** A change of log-odds that no digit of a probability shows. */
const NO_CHANGE = 0.005;

/** The effect of a visit or a code on an answer: a bar, the side that it is on, and the answer without it. What lowers it by its absence speaks for it. */
function effectOf(answer, change, most) {
  if (!known(change)) return null;
  if (Math.abs(change) < NO_CHANGE) return h("span.effect.none", "hardly any effect");
  const without = 1 / (1 + Math.exp(-logOdds(answer.probability) - change));
  return h("span.effect", pull(-change / most), h("span", change < 0 ? "speaks for" : "speaks against", h("span.muted", `: ${chance(without)} without it`)));
}

/** A heading, a strip of the visits, and the codes of the chosen one; nothing where the run sees no history. */
function timelinePart(view, run, change) {
  if (!view.visits) return null;
  const visits = visitsOf(view);
  const about = h("p"), panel = h("div.visit-codes", { "aria-live": "polite" });
  const strip = h("ol.visits", { "aria-label": "Visits, the oldest first", keydown: moved });
  const root = part("timeline", "The visits before this encounter", about, ...view.visits.length ? [strip, panel] : []);
  let answer = null, chosen = null;

  /** The strip, and what it says of an answer; `null` where it is not known what the answer owes to visits. */
  function draw() {
    about.replaceChildren(...introduction(view, run, answer));
    const effects = new Map((answer?.visits ?? []).map(each => [each.visits_before, each.log_odds_change]));
    const most = Math.max(1, ...[...effects.values()].filter(known).map(Math.abs));
    const focused = strip.contains(document.activeElement) ? Number(document.activeElement.dataset.visit) : null;
    // One card takes the focus of the keyboard: that which has it, or else the chosen one.
    const entry = focused ?? (visits.some(each => each.visits_before === chosen) ? chosen : 0);
    strip.replaceChildren(...visits.map(visit => card(visit, entry, effects.get(visit.visits_before), most)));
    if (focused !== null) strip.querySelector("[tabindex='0']").focus();
    panel.replaceChildren(...visits.filter(each => each.visits_before === chosen).map(visit => visitCodes(visit, answer, view.hidden)));
    // The latest are nearest to the question: they are in sight where not all fit.
    if (!draw.done) requestAnimationFrame(() => { strip.scrollLeft = strip.scrollWidth; });
    draw.done = true;
  }

  function card(visit, entry, effect, most) {
    const back = visit.visits_before;
    return h(`li${back ? "" : ".asked"}`, h("button.visit", {
      type: "button", "aria-pressed": back === chosen, "data-visit": back, tabindex: back === entry ? 0 : -1,
      click: () => change({ visit: back === chosen ? null : back }),
    }, h("strong", timeOf(visit)), h("span.muted", countOf(visit.codes)),
    back ? effectOf(answer, effect, most) : answer && h("span.effect", h("span", `the answer: ${chance(answer.probability)}`))));
  }

  /** Arrow keys go through the strip, whether it lies or stands. */
  function moved(event) {
    const buttons = [...strip.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    if (!buttons[next]) return;
    buttons.forEach((button, place) => button.setAttribute("tabindex", place === next ? 0 : -1));
    buttons[next].focus();
  }

  return {
    root,
    /** Shows what another answer owes to the visits. */
    explain(next) { answer = next; draw(); },
    choose(next) { if (next !== chosen || !draw.done) { chosen = next; draw(); } },
  };
}

const countOf = codes => codes.length === 1 ? "1 code" : `${integer(codes.length)} codes`;

/** How many of the visits that were given the model does not see, and which it does. */
function unseen({ not_seen: many }, { history }) {
  if (!many) return null;
  const most = history.visits - 1;
  const began = known(history.days) && `began at most ${history.days === 1 ? "a day" : `${history.days.toLocaleString("en-US")} days`} before this encounter and `;
  return h("span.unseen", h("strong", `${many === 1 ? "1 visit is" : `${integer(many)} visits are`} not seen`),
    `: the model sees the latest${most === 1 ? "" : ` ${integer(most)}`} of those that ${began || ""}were over when ${began ? "it" : "this encounter"} began. `);
}

/** What the strip is about, in a sentence. */
function introduction(view, run, answer) {
  const lost = unseen(view, run);
  if (!view.visits.length) return [lost ?? h("span.muted", "The model sees earlier visits, and there is none before this encounter.")];
  return [...seenOnes(view, run, answer), lost && " ", lost].filter(Boolean);
}

function seenOnes(view, run, answer) {
  const many = view.visits.length === 1 ? "One earlier visit is" : `${integer(view.visits.length)} earlier visits are`;
  if (!answer?.visits) return [`${many} seen. What the answer would be without each of them is not known here.`];
  return [`${many} seen. Below each: what `, h("strong", answerName(view, run, answer)), ` (${chance(answer.probability)}) would be without it. `,
    h("span.muted.hint", "Choose a visit to see its codes.")];
}

/** The codes of a visit by kind, those first on which the answer depends most. */
function visitCodes(visit, answer, hidden) {
  const effect = node => answer?.effects?.get(effectKey(visit.visits_before, node)) ?? null;
  const strength = node => Math.abs(effect(node) ?? 0);
  const most = [...answer?.effects?.values() ?? []].filter(known).reduce((most, change) => Math.max(most, Math.abs(change)), 1);
  const nodes = visit.codes.map((code, at) => ({ ...code, isHidden: !visit.visits_before && at + 1 === hidden })).sort((a, b) => strength(b) - strength(a));
  const item = node => h("li", labelledNode(node), node.isHidden ? h("span.muted", " hidden from the model") : effectOf(answer, effect(node), most));
  const title = `${timeOf(visit)[0].toUpperCase()}${timeOf(visit).slice(1)}: ${countOf(visit.codes)}`;
  return h("div", h("h4", title, visit.encounter_id ? h("bdi.muted", ` ${clean(visit.encounter_id)}`) : null),
    nodes.length ? codesByKind(nodes, item) : h("p.muted", "No code that the model knows."));
}

/** What the effect of a code of a visit is found by. */
const effectKey = (back, { kind, code }) => `${back} ${kind} ${code}`;
