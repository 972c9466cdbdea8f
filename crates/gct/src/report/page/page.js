// Which section is shown, of which run; the address after # says so, and so a link leads back to what was seen.

const SECTIONS = {
  encounters: ["Encounters", encountersSection],
  overview: ["Overview", overviewSection],
  structure: ["Structure", structureSection],
  map: ["Map", mapSection],
  card: ["Card", cardSection],
  ask: ["Ask", askSection],
};

/** The run that is shown first: one that says how probable a label is, which is what a reader can act on; else the first of all. */
function firstRun(report) {
  const answers = report.runs.findIndex(run => run.asks === "labels" && run.encounters.length > 0);
  return Math.max(0, answers);
}

/** What the address says, for this report: names that it does not know are left out. Without any, it is the answer for an encounter. */
function stateOf(report, hash) {
  const [section, query] = hash.replace(/^#/, "").split("?");
  const values = new URLSearchParams(query ?? "");
  const number = name => /^\d{1,9}$/.test(values.get(name) ?? "") ? Number(values.get(name)) : null;
  const shown = Object.hasOwn(SECTIONS, section) && (section !== "ask" || report.live);
  const named = report.runs.findIndex(run => run.name === values.get("run"));
  const run = named < 0 ? firstRun(report) : named;
  const first = report.runs[run].encounters.length ? "encounters" : "overview";
  return {
    section: shown ? section : first, run,
    encounter: number("encounter"), label: values.get("label"), layer: values.get("layer"), view: values.get("view"), node: number("node"), code: number("code"), visit: number("visit"),
  };
}

function hashOf(report, state) {
  const values = new URLSearchParams();
  const put = (name, value) => { if (value !== null && value !== undefined) values.set(name, value); };
  if (report.runs.length > 1) put("run", report.runs[state.run].name);
  const own = { encounters: ["encounter", "label", "layer", "view", "node", "visit"], map: ["code"] }[state.section] ?? [];
  own.forEach(name => put(name, state[name]));
  return `#${state.section}${values.size ? "?" + values : ""}`;
}

async function start() {
  const main = document.getElementById("main");
  document.querySelector(".skip").addEventListener("click", event => { event.preventDefault(); main.focus(); });
  themes();
  paper();
  let report;
  try {
    report = await readReport();
    if (report.format !== 3) throw new Error(`This page shows reports of format 3, and this one is of format ${clean(report.format)}.`);
    if (!report.runs.length) throw new Error("There is no run in this report.");
  } catch (error) {
    main.replaceChildren(trouble(error));
    return;
  }
  const about = document.getElementById("about");
  about.textContent = `${report.program}${report.live ? ", live" : ""}`;
  if (report.min_cell > 0) about.append(`; counts below ${report.min_cell} are not shown`);

  let state = stateOf(report, location.hash), drawn = { key: null, update: null }, waiting = null;

  /** Changes what is shown. Steps that one would not want to go back through replace the address instead of adding to the history. */
  function go(changes, replace = false) {
    Object.assign(state, changes);
    clearTimeout(waiting);
    if (replace) waiting = setTimeout(() => history.replaceState(null, "", hashOf(report, state)), 200);
    else if (hashOf(report, state) !== location.hash) history.pushState(null, "", hashOf(report, state));
    go.state = state;
    render();
  }
  go.state = state;

  const enter = section => event => {
    event.preventDefault();
    go({ section });
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  };
  const links = Object.entries(SECTIONS).filter(([name]) => name !== "ask" || report.live)
    .map(([section, [title]]) => h("a", { href: `#${section}`, "data-section": section, click: enter(section) }, title));
  document.getElementById("sections").replaceChildren(...links.map(link => h("li", link)));
  const runs = document.getElementById("runs");
  runs.replaceChildren(...report.runs.map((run, at) => h("option", { value: at }, clean(run.name).slice(0, 60))));
  runs.addEventListener("change", () => go({ run: Number(runs.value), node: null, code: null, visit: null }));
  runs.parentElement.hidden = report.runs.length < 2;

  function render() {
    const run = report.runs[state.run];
    runs.value = state.run;
    for (const link of links) {
      if (link.dataset.section === state.section) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    const key = `${state.section} ${state.run}`;
    if (key !== drawn.key) {
      main.replaceChildren();
      document.title = `${SECTIONS[state.section][0]}, ${clean(run.name)} – gct`;
      drawn = { key, update: SECTIONS[state.section][1](main, report, run, go) };
    }
    drawn.update?.(state);
  }

  function returned() {
    clearTimeout(waiting);
    if (location.hash === hashOf(report, state)) return;
    state = stateOf(report, location.hash);
    go.state = state;
    render();
  }
  window.addEventListener("popstate", returned);
  window.addEventListener("hashchange", returned);
  render();
}

/** Light or dark as the system wants it, until the reader says otherwise. Paper is light. */
function themes() {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  let own = null;
  const set = theme => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show in ${theme === "dark" ? "light" : "dark"} colours`);
    for (const place of document.querySelectorAll(".sized")) if (place.querySelector("canvas")) place.redraw();
  };
  const apply = () => set(own ?? (wish.matches ? "dark" : "light"));
  button.addEventListener("click", () => { own = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; apply(); });
  wish.addEventListener("change", apply);
  window.addEventListener("beforeprint", () => set("light"));
  window.addEventListener("afterprint", apply);
  apply();
}

/** Paper cannot be unfolded: what is said of an encounter is printed whole. */
function paper() {
  let folded = [];
  const fold = isOpen => folded.forEach(each => { each.open = isOpen; });
  window.addEventListener("beforeprint", () => { folded = [...document.querySelectorAll(".explain details:not([open])")]; fold(true); });
  window.addEventListener("afterprint", () => fold(false));
}

start();
