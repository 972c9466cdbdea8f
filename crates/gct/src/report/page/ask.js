// With a server behind the page: encounters of the reader's own, and the token that the server may want.

function askSection(main, report, run) {
  // An example of codes that the model knows: those of the first encounter.
  const code = kind => {
    const known = run.encounters[0]?.codes ?? [...run.codes.kind.keys()];
    return known.filter(index => run.codes.kind[index] === kind).slice(0, 3).map(index => run.codes.code[index]);
  };
  const context = code(4);
  const example = { encounters: [{ ...(context.length && { context }), diagnosis: code(1), treatment: code(2), lab: code(3) }] };
  const text = h("textarea", { rows: 9, spellcheck: "false", "aria-label": "Encounters as JSON", keydown: event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  } });
  text.value = JSON.stringify(example, null, 1);
  const file = h("input", { type: "file", accept: ".json,application/json", change: async () => {
    if (!file.files[0]) return;
    text.value = await file.files[0].text();
    send();
  } });
  const result = h("div");
  const form = h("form", { submit: event => { event.preventDefault(); send(); } }, text,
    h("div.controls", h("button.primary", { type: "submit" }, "Explain"), h("label.file", "or take a file ", file)));

  async function send() {
    try {
      check(text.value);
      result.setAttribute("aria-busy", "true");
      const { explanations } = await request("v1/explain", text.value);
      show(explanations.map(explained));
    } catch (error) {
      result.replaceChildren(trouble(error));
    } finally {
      result.removeAttribute("aria-busy");
    }
  }

  function show(views) {
    if (!views.length) return result.replaceChildren(h("p.empty", "There was no encounter in it."));
    const place = h("div");
    const open = at => {
      const settings = { view: "graph", layer: null, node: null };
      const shown = explain(views[at], run.asks, changes => shown.update(Object.assign(settings, changes)));
      place.replaceChildren(shown.root);
      shown.update(settings);
    };
    const names = views.map((view, at) => h("option", { value: at }, `encounter ${at + 1}, ${view.nodes.length - 1} codes`));
    const select = h("select", { change: () => open(Number(select.value)) }, names);
    result.replaceChildren(h("div.title", h("h2", "What the model makes of it"), views.length > 1 ? h("label", "Show ", select) : null), place);
    open(0);
  }

  main.append(h("section.ask", h("h2", "Ask about your own encounters"),
    h("p.muted", "Codes as the model knows them, by kind; each list may be left out. They are sent to the server of this page and nowhere else.",
      run.asks === "diagnosis" ? " With \"hide\": \"CODE\" you say which diagnosis is hidden." : ""), form, result));
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
