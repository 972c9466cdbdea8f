// The model card of a run: its sections as the report has them.

function cardSection(main, report, run) {
  const { card } = run;
  if (!card) {
    main.append(h("section", h("h2", "Model card"), h("p.empty", "This report has no model card.")));
    return;
  }
  main.append(h("section", h("h2", clean(card.title))),
    ...card.sections.map(section => h("section",
      h("h3", section.title, section.tripod && h("span.muted", ` (TRIPOD+AI ${section.tripod})`)),
      section.items.map(cardItem))));
}

/** A piece of a section: an object with one field, which names its kind. */
function cardItem(item) {
  const [kind, content] = Object.entries(item)[0];
  const kinds = {
    text: text => h("p", clean(text)),
    to_complete: what => h("p.note", h("strong", "To be completed by the authors: "), clean(what)),
    points: points => h("ul", points.map(point => h("li", clean(point)))),
    facts: facts => h("dl.facts", facts.map(([name, value]) => h("div", h("dt", name), h("dd", clean(value))))),
    table: ({ caption, columns, rows }) => table(clean(caption),
      columns.map((name, at) => ({ name: clean(name), number: at > 0, cell: row => clean(row[at]) })), rows),
    code: text => h("pre", h("code", text)),
  };
  return Object.hasOwn(kinds, kind) ? kinds[kind](content) : null;
}
