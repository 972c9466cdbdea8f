// Earlier visits of an encounter that is asked about: for each a picker of codes, and how many days before the encounter it was.

const DAY = 24 * 60 * 60 * 1000;

/** More days than a life has. */
const MOST_DAYS = 50000;

/** A moment as the server wants it. Only the days between two visits count for the model, so the encounter is of today. */
const dateOf = (now, days) => new Date(now - days * DAY).toISOString().slice(0, 10);

/** Earlier visits to be filled in. `changed` hears that something of them is other than before. */
function visitsPicker(run, changed) {
  const most = run.history.visits - 1;
  const list = h("ol.earlier");
  const adder = h("button", { type: "button", click: () => add().days.focus() }, "Add an earlier visit");
  const { days: reach } = run.history;
  const back = known(reach) ? h("p.muted", `The model sees visits of the ${reach === 1 ? "day" : `${reach.toLocaleString("en-US")} days`} before the encounter, and none that began earlier.`) : null;
  const full = h("p.muted", { hidden: true }, `The model sees ${most === 1 ? "one earlier visit" : `${integer(most)} earlier visits`} at most.`);
  let visits = [];

  function add() {
    const number = visits.length + 1;
    const visit = { days: h("input.number-field", { type: "number", min: 1, step: 1, inputmode: "numeric", input: changed }) };
    const label = h("label", visit.days, " days before the encounter");
    const title = h("h4");
    visit.title = title;
    visit.picker = codePicker(run, [], () => { if (visits.includes(visit)) changed(); }, `Add a code of earlier visit ${number}`);
    visit.root = h("li", h("div.earlier-head", title, label,
      h("button", { type: "button", click: () => remove(visit) }, "Remove this visit")), visit.picker.root);
    visits.push(visit);
    list.append(visit.root);
    arrange();
    return visit;
  }

  function remove(visit) {
    visits = visits.filter(each => each !== visit);
    visit.root.remove();
    arrange();
    adder.focus();
  }

  function arrange() {
    visits.forEach((visit, at) => {
      visit.title.textContent = `Earlier visit ${at + 1}`;
      visit.days.setAttribute("aria-label", `Days from earlier visit ${at + 1} to the encounter`);
    });
    adder.disabled = visits.length >= most;
    full.hidden = !adder.disabled;
    changed();
  }

  const daysOf = visit => Number(visit.days.value);
  const isWhole = days => Number.isInteger(days) && days >= 1 && days <= MOST_DAYS;

  /** What is wrong with them, in words; null if nothing is. */
  function trouble() {
    for (const [at, visit] of visits.entries()) {
      if (!isWhole(daysOf(visit))) return `Say how many days before the encounter earlier visit ${at + 1} was: a whole number from 1.`;
    }
    if (new Set(visits.map(daysOf)).size < visits.length) return "Two earlier visits are of the same day. Give them different days.";
    return null;
  }

  /** The encounter with these visits before it. */
  function beside(encounter) {
    if (!visits.length) return encounter;
    const now = Date.now();
    const oldest = [...visits].sort((a, b) => daysOf(b) - daysOf(a));
    // One that is not filled in yet has no start.
    const start = visit => isWhole(daysOf(visit)) ? { start: dateOf(now, daysOf(visit)) } : {};
    return { start: dateOf(now, 0), ...encounter, visits: oldest.map(visit => ({ ...start(visit), ...visit.picker.encounter() })) };
  }

  function clear() {
    visits.forEach(visit => visit.root.remove());
    visits = [];
    arrange();
  }

  return { root: h("div.history", list, h("p", adder), back, full), beside, trouble, clear, incomplete: () => visits.flatMap(visit => visit.picker.incomplete()) };
}
