// With a server behind the page: encounters of the reader's own, and the token that the server may want.

function askSection(main, report, run) {
  // An example of codes that the model knows: those of the first encounter, or the most frequent ones.
  const code = kind => {
    const own = run.encounters[0]?.codes ?? [...run.codes.kind.keys()].sort((a, b) => (run.codes.count[b] ?? 0) - (run.codes.count[a] ?? 0));
    return own.filter(index => run.codes.kind[index] === kind && !BUCKET[kind]?.test(run.codes.code[index])).slice(0, 3);
  };
  let byHand = false, latest = 0, waiting = null;
  const text = h("textarea", { rows: 9, spellcheck: "false", "aria-label": "Encounters as JSON", input: () => { byHand = true; }, keydown: event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  } });
  const file = h("input", { type: "file", accept: ".json,application/json", change: async () => {
    if (!file.files[0]) return;
    text.value = await file.files[0].text();
    byHand = true;
    send();
  } });
  const result = h("div.result");
  const earlier = run.history?.visits > 1 ? visitsPicker(run, () => chosen(picker.encounter())) : null;
  const picker = codePicker(run, [4, 1, 2, 3].flatMap(code), chosen);
  const json = h("details", h("summary", "The same as JSON, for several encounters or from a file"), text,
    h("div.controls", h("label.file", "Take a file ", file)));
  const clear = () => { earlier?.clear(); picker.clear(); };
  const form = h("form", { novalidate: true, submit: event => { event.preventDefault(); send(); } }, picker.root, ...earlier ? [earlier.root] : [],
    h("div.controls", h("button.primary", { type: "submit" }, "Explain"), h("button", { type: "button", click: clear }, "Clear")), json);

  function chosen(encounter) {
    byHand = false;
    text.value = JSON.stringify({ encounters: [earlier?.beside(encounter) ?? encounter] }, null, 1);
    // The first answer is asked for; from then on it follows what is chosen.
    clearTimeout(waiting);
    if (latest) waiting = setTimeout(send, 250);
  }

  async function send() {
    const mine = ++latest;
    clearTimeout(waiting);
    try {
      const wrong = byHand ? null : earlier?.trouble();
      if (wrong) throw new Error(wrong);
      const lacking = byHand ? [] : [...picker.incomplete(), ...earlier?.incomplete() ?? []];
      if (lacking.length) {
        throw Object.assign(new Error(`Give a value for ${lacking.map(each => titleOf(each.code, each.description)).join(", ")}.`),
          { hint: "The model knows it in ranges of values alone." });
      }
      check(text.value);
      result.setAttribute("aria-busy", "true");
      const { explanations } = await request("v1/explain", text.value);
      if (mine === latest) show(explanations.map(explained));
    } catch (error) {
      if (mine === latest) result.replaceChildren(trouble(error));
    } finally {
      if (mine === latest) result.removeAttribute("aria-busy");
    }
  }

  const settings = { label: null, view: null, layer: null, node: null, visit: null };

  function show(views) {
    if (!views.length) return result.replaceChildren(h("p.empty", "There was no encounter in it."));
    const place = h("div");
    const open = at => {
      settings.node = null;
      const shown = explain(views[at], run, report, changes => shown.update(Object.assign(settings, changes)));
      place.replaceChildren(shown.root);
      shown.update(settings);
    };
    const names = views.map((view, at) => h("option", { value: at }, `encounter ${at + 1}, ${view.nodes.length - 1} codes`));
    const select = h("select", { change: () => open(Number(select.value)) }, names);
    result.replaceChildren(h("div.title", h("h2", "What the model makes of it"), views.length > 1 ? h("label", "Show ", select) : null), place);
    open(0);
  }

  main.append(h("section.ask", h("h2", "Ask about your own encounters"),
    h("p.muted", "Choose codes by name. They are sent to the server of this page and nowhere else.",
      guesses(run) ? ` In JSON, "hide": "CODE" says which ${run.asks} is hidden.` : ""), form, result));
}

/** Complains in words about what could not even be sent. */
function check(text) {
  let request;
  try {
    request = JSON.parse(text);
  } catch (error) {
    throw Object.assign(new Error("This is not JSON."), { hint: clean(error.message) });
  }
  if (!Array.isArray(request?.encounters)) {
    throw Object.assign(new Error("There is no list of encounters in it."),
      { hint: 'Write {"encounters": [{"diagnosis": ["CODE"], "treatment": [], "lab": []}]}' });
  }
}

/** Asks for a token, and waits until there is one. */
function askForToken(again) {
  return new Promise(resolve => {
    const field = h("input", { type: "password", autocomplete: "off", "aria-label": "Token", required: true });
    const panel = h("form.notice.token", { role: "alert", submit: event => {
      event.preventDefault();
      panel.remove();
      resolve(field.value);
    } }, h("p", again ? "The server does not accept this token." : "The server wants a token."),
    h("label", "Token ", field), h("button.primary", { type: "submit" }, "Send"), h("p.muted", "It is kept until you close or reload this page."));
    document.getElementById("messages").append(panel);
    field.focus();
  });
}
