// The list of encounters, of which only the visible rows exist, and the chosen one beside it.

const ROW = 34;

/** Below this width the list has no room beside the answer, and is closed above it. */
const LIST_ROOM = 800;

/** Why an encounter is on the page: the report holds the first ones, and some of those that a reader wants to see. */
const REASONS = { first: "first ones", risk: "highest risk", positive: "truly yes", loss: "worst losses" };

/** A list in which `pick(place, replace)` hears which encounter was chosen, by its place in the run. */
function encounterList(run, pick) {
  let order = run.encounters.map((_, place) => place);
  const isLabel = run.asks === "labels";
  // What is most at risk comes first where there is a risk.
  let chosen = 0, sort = isLabel ? { key: "probability", down: true } : { key: "number", down: false }, reason = "";
  const probability = encounter => encounter.answers[0]?.probability;
  const truth = encounter => encounter.answers[0]?.truth;
  const keys = {
    number: ["number", encounter => encounter.number],
    codes: ["codes", encounter => encounter.codes.length],
    probability: ["prob.", probability],
    ...isLabel && { truth: ["truth", encounter => typeof truth(encounter) === "boolean" ? Number(truth(encounter)) : null] },
    loss: ["loss", encounter => encounter.loss],
  };
  const reasons = Object.entries(REASONS).filter(([name]) => run.encounters.some(encounter => encounter.chosen?.includes(name)));
  const filter = h("select", { "aria-label": "Which encounters", change: () => { reason = filter.value; arrange(); } },
    h("option", { value: "" }, "all that are here"), reasons.map(([name, text]) => h("option", { value: name }, text)));
  const search = h("input", { type: "search", placeholder: "code, description or number", "aria-label": "Search encounters", input: arrange });
  const heads = Object.entries(keys).map(([key, [name]]) => h("button", { type: "button", "data-key": key, title: `Sort by ${key}`, click: () => {
    sort = { key, down: sort.key === key ? !sort.down : key !== "number" };
    arrange();
  } }, name));
  const found = h("p.muted", { role: "status" });
  const space = h("div.space", { role: "presentation" });
  const box = h("div.rows", { role: "listbox", tabindex: 0, "aria-label": "Encounters", scroll: paint, keydown: moved }, space);

  function arrange() {
    const text = search.value.trim();
    const codes = text ? matching(run, text) : null;
    const called = encounter => String(encounter.number) === text || encounter.id?.toLowerCase() === text.toLowerCase();
    const wanted = encounter => called(encounter) || encounter.codes.some(code => codes.has(code)) ||
      encounter.id?.toLowerCase().includes(text.toLowerCase());
    const isShown = encounter => (!reason || encounter.chosen?.includes(reason)) && (!codes || wanted(encounter));
    order = run.encounters.flatMap((encounter, place) => isShown(encounter) ? [place] : []);
    const value = place => keys[sort.key][1](run.encounters[place]);
    const first = place => text !== "" && called(run.encounters[place]);
    // The encounter of just this number comes first; what is not known comes last, whichever way the rest is sorted.
    order.sort((a, b) => first(b) - first(a) || known(value(b)) - known(value(a)) ||
      (sort.down ? -1 : 1) * ((value(a) ?? 0) - (value(b) ?? 0)) || a - b);
    for (const head of heads) {
      const own = head.dataset.key === sort.key;
      head.setAttribute("aria-pressed", own);
      head.dataset.arrow = own ? (sort.down ? "▼" : "▲") : "";
    }
    found.textContent = text || reason ? `${integer(order.length)} of ${integer(run.encounters.length)} encounters` : `${integer(order.length)} encounters`;
    box.scrollTop = 0;
    paint();
  }

  function paint() {
    space.style.height = `${order.length * ROW}px`;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
    const last = Math.min(order.length, Math.ceil((box.scrollTop + (box.clientHeight || 600)) / ROW) + 4);
    space.replaceChildren(...order.slice(first, last).map((place, at) => row(place, first + at)));
    const at = order.indexOf(chosen);
    if (at >= first && at < last) box.setAttribute("aria-activedescendant", `encounter-${chosen}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function row(place, at) {
    const encounter = run.encounters[place];
    const answer = encounter.answers[0];
    const word = typeof answer?.truth === "boolean" ? (answer.truth ? "yes" : "no") : DASH;
    const wrong = disagrees(run, answer);
    const mark = wrong && h("span.wrong", { title: "The answer and the truth disagree." }, "≠ ");
    const element = h("div.row", {
      role: "option", id: `encounter-${place}`, title: encounter.id ? clean(encounter.id) : null, click: () => { fold(); pick(place, false); },
      "aria-selected": place === chosen, "aria-setsize": order.length, "aria-posinset": at + 1,
    },
    h("span", encounter.id ? [integer(encounter.number), h("bdi.muted", ` ${clean(encounter.id)}`)] : integer(encounter.number)),
    h("span", integer(encounter.codes.length)), h("span", isLabel ? "" : mark, chance(probability(encounter))),
    isLabel && h("span", mark, word), h("span", figure(encounter.loss, 3)));
    element.style.top = `${at * ROW}px`;
    return element;
  }

  function moved(event) {
    const at = order.indexOf(chosen);
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const next = { ArrowUp: at - 1, ArrowDown: at + 1, PageUp: at - page, PageDown: at + page, Home: 0, End: order.length - 1 }[event.key];
    if (next === undefined || !order.length) return;
    event.preventDefault();
    pick(order[Math.min(order.length - 1, Math.max(0, next))], true);
  }

  /** Marks the chosen encounter and brings it into sight. */
  function choose(place) {
    chosen = place;
    const y = order.indexOf(place) * ROW;
    if (y >= 0 && (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight)) box.scrollTop = y - box.clientHeight / 2 + ROW / 2;
    paint();
  }

  const beside = step => { const at = order.indexOf(chosen) + step; if (order[at] !== undefined) pick(order[at], false); };
  const note = {
    pairs: "Probability: of the pair of codes that the model is surest of.",
    diagnosis: "Probability: of the best guess. ≠: it is not the hidden diagnosis.",
    code: "Probability: of the best guess. ≠: it is not the hidden code.",
    next: "Probability: of the most probable diagnosis of the next visit.",
    labels: "≠: answer and truth disagree at the threshold.",
  }[run.asks];
  const mixed = reasons.length > 1 ? " A mix of the first encounters and of remarkable ones: shares in this list say nothing." : "";
  const narrow = matchMedia(`(max-width: ${LIST_ROOM}px)`);
  const fold = () => { root.open = !narrow.matches; };
  const root = h(`details.list${isLabel ? ".five" : ""}`, { toggle: () => { if (root.open) choose(chosen); } }, h("summary", "Choose another encounter"), search, reasons.length > 1 && filter, found, h("div.heads", { role: "group", "aria-label": "Sort" }, heads), box, h("p.muted", note, mixed));
  narrow.addEventListener("change", fold);
  fold();
  arrange();
  return { root, choose, beside, first: () => order[0] ?? 0 };
}

function encountersSection(main, report, run, go) {
  if (!run.encounters.length) {
    main.append(h("p.empty", "No encounters are in this report."));
    return () => {};
  }
  const list = encounterList(run, (place, replace) => go({ encounter: run.encounters[place].number, node: null, visit: null }, replace));
  const detail = h("div.detail");
  let place = -1, shown = null, asked = 0;
  main.append(h("div.split", list.root, detail));

  async function open(next) {
    const mine = ++asked;
    place = next;
    shown = null;
    detail.setAttribute("aria-busy", "true");
    try {
      const view = await explanationOf(report, run, next);
      if (mine !== asked) return;
      shown = explain(view, run, report, changes => go(changes, !("node" in changes || "visit" in changes)));
      detail.replaceChildren(heading(view), shown.root);
      shown.update(go.state);
    } catch (error) {
      if (mine === asked) detail.replaceChildren(trouble(error));
    } finally {
      if (mine === asked) detail.removeAttribute("aria-busy");
    }
  }

  function heading(view) {
    const reasons = (run.encounters[place].chosen ?? []).map(reason => REASONS[reason]).filter(Boolean);
    const facts = [`${integer(view.nodes.length - 1)} codes`, view.visits && `${integer(view.visits.length)} earlier visit${view.visits.length === 1 ? "" : "s"}`, known(view.loss) && `loss ${figure(view.loss, 3)}`,
      reasons.length && !reasons.includes(REASONS.first) && `shown for: ${reasons.join(", ")}`].filter(Boolean);
    const step = (by, name) => h("button", { type: "button", click: () => list.beside(by) }, name);
    return h("div.title", h("h2", `Encounter ${integer(view.number)}`, view.id ? h("bdi.muted", ` ${clean(view.id)}`) : null),
      h("p.muted", facts.join(", ")), h("div.step", step(-1, "Previous"), step(1, "Next")));
  }

  return state => {
    const wanted = run.encounters.findIndex(encounter => encounter.number === state.encounter);
    const next = wanted >= 0 ? wanted : list.first();
    list.choose(next);
    if (next !== place) open(next);
    else shown?.update(state);
  };
}

function trouble(error) {
  return h("div.notice.error", { role: "alert" }, h("p", error.message), error.hint && h("p.muted", error.hint));
}
