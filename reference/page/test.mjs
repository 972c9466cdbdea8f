// Walks through the explorer page in a browser: a file with everything in it, a page that a server feeds, and, where the environment names
// them, a report that gct wrote (GCT_REPORT, a path) and servers that gct runs (GCT_SERVE, and GCT_SERVE_HISTORY of a run that sees earlier
// visits: addresses).
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { file, livePage, livePolicy, script, style } from "./assemble.mjs";
import { explanation, fixture, fixtureOfHistory, HOSTILE } from "./fixture.mjs";

const folder = mkdtempSync(join(tmpdir(), "gct-page-"));
const made = fixture();
/** Runs that see earlier visits, in a report of their own and behind a server of their own. */
const past = fixtureOfHistory();
let browser, live, livePast;
const servers = [];
/** What the fake server was asked to explain, with the token that came along, and whether it wants one. */
const asked = [];
let secret = null;
/** The run that it explains. */
let explains = 0;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.GCT_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  writeFileSync(join(folder, "report.html"), file(made.report));
  writeFileSync(join(folder, "large.html"), file(fixture({ many: 500 }).report));
  writeFileSync(join(folder, "past.html"), file(past.report));
  live = await serve(made);
  livePast = await serve(past);
});

after(async () => {
  await browser.close();
  servers.forEach(server => server.close());
  rmSync(folder, { recursive: true });
});

/** The address of a new server of a report. */
async function serve(made) {
  const server = createServer((request, response) => answer(made, request, response)).listen(0, "127.0.0.1");
  servers.push(server);
  await new Promise(resolve => server.once("listening", resolve));
  return `http://127.0.0.1:${server.address().port}/`;
}

/** A server of the shapes that gct serves. */
async function answer(made, request, response) {
  const send = (status, type, body) => response.writeHead(status, { "Content-Type": type, "Content-Security-Policy": livePolicy }).end(body);
  const json = (status, value) => send(status, "application/json", JSON.stringify(value));
  if (request.url === "/") return send(200, "text/html", livePage());
  if (request.url === "/page/page.css") return send(200, "text/css", style);
  if (request.url === "/page/page.js") return send(200, "text/javascript", script);
  if (secret && request.headers.authorization !== `Bearer ${secret}`) return json(401, { error: "a token is needed", hint: "send it" });
  // Reasons and earlier visits are asked for one encounter at a time.
  const bare = run => ({ ...run, matrices: null, encounters: run.encounters.map(({ why, visits, ...encounter }) => encounter) });
  if (request.url === "/page/report.json") return json(200, { ...made.report, live: true, runs: made.report.runs.map(bare) });
  const of = request.url.match(/^\/page\/runs\/(\d+)\/encounters\/(\d+)$/);
  if (of) return json(200, explanation(made, Number(of[1]), Number(of[2]) - 1));
  if (request.url === "/v1/explain") {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { encounters } = JSON.parse(body);
    asked.push({ encounters, token: request.headers.authorization });
    if (encounters.some(encounter => encounter.diagnosis?.includes("TOO MANY"))) return json(422, { error: "too many codes", hint: "send fewer" });
    return json(200, { explanations: encounters.map((encounter, at) => ({ ...explanation(made, explains, at), edges: null, ...pastOf(made, encounter),
      unknown: (encounter.diagnosis ?? []).filter(code => code === "XYZ").map(code => ({ kind: "diagnosis", code })) })) });
  }
  return json(404, { error: "there is no such page" });
}

/** What is said of an encounter that comes with earlier visits: of the first of the fixture that has so many, with its own days. */
function pastOf(made, { start, visits = [] }) {
  if (!made.report.runs[explains].history) return {};
  const days = visits.map(visit => Math.round((Date.parse(start) - Date.parse(visit.start)) / 864e5)).sort((a, b) => a - b);
  const base = explanation(made, explains, made.report.runs[explains].encounters.findIndex(each => each.visits.length >= visits.length));
  const near = { ...base, visits: base.visits.slice(0, days.length).map((visit, at) => ({ ...visit, days_before: days[at] })) };
  const { days: most } = made.report.runs[explains].history;
  const isSeen = visit => most === null || visit.days_before <= most;
  const seen = near.visits.filter(isSeen);
  if (seen.length < days.length) return { ...near, visits: seen, not_seen: days.length - seen.length, attributions: near.attributions.map(each => ({ ...each, visits: each.visits.filter(visit => visit.visits_before <= seen.length) })) };
  return { ...near, not_seen: 0, attributions: near.attributions.map(each => ({ ...each, visits: each.visits.filter(visit => visit.visits_before <= days.length) })) };
}

/** Opens an address; whatever the browser complains of, and whatever is fetched that is not expected, fails the test. */
async function open(t, address, { width = 1280, theme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, acceptDownloads: true });
  const page = await context.newPage();
  const problems = [];
  page.on("console", message => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
  page.on("pageerror", error => problems.push(error.stack));
  const own = new URL(address);
  const expected = [own.pathname, "page/page.css", "page/page.js", "page/report.json", "v1/explain", /^page\/runs\/\d+\/encounters\/\d+$/];
  page.on("request", request => {
    const url = new URL(request.url());
    if (url.protocol === "blob:") return;
    const path = url.pathname.slice(new URL(".", own).pathname.length);
    const fine = url.origin === own.origin && (own.protocol === "file:" ? url.pathname === own.pathname
      : url.pathname === own.pathname || expected.some(each => each instanceof RegExp ? each.test(path) : each === path));
    if (!fine) problems.push(`fetched ${request.url()}`);
  });
  t.after(async () => {
    const hacked = await page.evaluate(() => window.hacked).catch(() => undefined);
    await context.close();
    assert.equal(hacked, undefined, "a code became markup");
    assert.deepEqual(problems.filter(problem => !page.forgiven?.some(text => problem.includes(text))), []);
  });
  await page.goto(address);
  await page.waitForSelector("main :is(section, .split, .empty, .notice), #messages form");
  return page;
}

const report = (hash = "") => pathToFileURL(join(folder, "report.html")).href + hash;
const pastReport = (hash = "") => pathToFileURL(join(folder, "past.html")).href + hash;
const fits = async page => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than its window");
const drawnGraph = page => page.waitForSelector(".graph .node");
const state = page => page.evaluate(() => location.hash);
const literal = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const at = (page, text) => page.waitForFunction(text => location.hash.includes(text), text);

/** Boxes of labels that overlap each other, are cut by the drawing, or have text that leaves its box. */
const badLabels = page => page.evaluate(() => {
  const svg = document.querySelector(".graph").getBoundingClientRect();
  const boxes = [...document.querySelectorAll(".graph .node")].map(node => ({ name: node.textContent, rect: node.querySelector("rect").getBoundingClientRect(), text: node.querySelector("text").getBoundingClientRect() }));
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
  const headings = [...document.querySelectorAll(".graph .heading")].map(each => each.getBoundingClientRect());
  const bad = boxes.filter(({ rect, text }) => text.right > rect.right + 0.5 || text.left < rect.left || rect.right > svg.right + 1 || rect.bottom > svg.bottom + 1).map(box => `cut: ${box.name}`);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => { if (overlap(a.rect, b.rect)) bad.push(`${a.name} over ${b.name}`); }));
  headings.forEach((a, i) => headings.slice(i + 1).forEach(b => { if (overlap(a, b)) bad.push("headings overlap"); }));
  headings.forEach(a => { if (a.right > svg.right + 1 || a.left < svg.left - 1) bad.push("a heading is cut"); });
  return bad;
});

describe("the file", () => {
  test("opens on the answer about a label, with the overview one click away", async t => {
    for (const width of [1280, 390]) {
      const page = await open(t, report(), { width });
      await page.waitForSelector(".big");
      assert.equal(await page.textContent("nav [aria-current]"), "Encounters");
      assert.equal(await page.locator("#runs option:checked").textContent(), "transformer", "the first run is about edges");
      const highest = Math.max(...made.report.runs[1].encounters.map(({ answers: [{ probability }] }) => probability));
      assert.equal(await page.textContent(".big strong"), `${(100 * highest).toFixed(1)}\u00a0%`);
      // The answer and the reasons are in sight, not below a list.
      const [answer, why] = await Promise.all([".big", ".why h3"].map(place => page.locator(place).evaluate(each => each.getBoundingClientRect().bottom)));
      assert.ok(answer < 500 && why < 900, `${answer}, ${why}`);
      await page.getByRole("link", { name: "Overview" }).click();
      await page.waitForSelector(".figures");
      assert.equal(await state(page), "#overview?run=transformer");
      await page.goBack();
      await page.waitForSelector(".big");
    }
    // Without encounters there is no answer, and without labels the first run answers.
    const others = made.report.runs.filter(run => run.asks !== "labels");
    for (const [name, runs, section] of [["edges", others, "Encounters"], ["none", [made.report.runs[4]], "Overview"]]) {
      writeFileSync(join(folder, `${name}.html`), file({ ...made.report, runs }));
      const page = await open(t, pathToFileURL(join(folder, `${name}.html`)).href);
      assert.equal(await page.textContent("nav [aria-current]"), section);
      assert.ok((await page.title()).includes(runs[0].name));
    }
  });

  test("on a phone the list of encounters is folded, and folds again when one is chosen", async t => {
    const page = await open(t, report("#encounters?run=transformer"), { width: 390 });
    await page.waitForSelector(".big");
    assert.equal(await page.locator(".rows").isVisible(), false);
    await page.getByText("Choose another encounter").click();
    assert.ok(await page.locator(".row[aria-selected='true']").isVisible());
    await page.locator(".row").nth(1).click();
    await at(page, "encounter=");
    assert.equal(await page.locator(".rows").isVisible(), false);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.waitForFunction(() => document.querySelector(".rows").offsetParent);
    assert.equal(await page.getByText("Choose another encounter").isVisible(), false);
  });

  test("the overview has figures, curves, the paper and what differs", async t => {
    const page = await open(t, report("#overview?run=gct"));
    assert.match(await page.textContent("main"), /Which nodes of an encounter are connected\?/);
    assert.match(await page.textContent(".figures"), /AUCPR.*0\.4913.*0\.4803 to 0\.5033/);
    assert.match(await page.textContent(".figures tbody tr:last-child"), /calibration error.*–/);
    const comparison = await page.textContent(".comparison");
    assert.match(comparison, /gct, paper0\.5965± 0\.0031/);
    assert.match(comparison, /masked diagnosis with a long name–/);
    assert.equal(await page.locator(".chart.dots").first().locator("circle").count(), 2);
    assert.equal(await page.locator(".chart.dots").first().locator(".paper").count(), 3);
    assert.match(await page.textContent(".chart.dots"), /gct, paper/);
    // A run that was asked about other encounters stands apart, and its figures are not ranked among the others.
    assert.deepEqual(await page.locator(".comparison tr.group").allTextContents(), [
      "graph reconstruction: the test part of synthetic data, 5,047 encounters", "label d1_m1", "masked diagnosis",
      "graph reconstruction: all of synthetic data, <11 encounters"]);
    assert.deepEqual(await page.locator(".comparison tr:has(strong) td:first-child, .comparison tr:has(strong) th:first-child").allTextContents(), ["gct", "shallow"]);
    assert.deepEqual(await page.locator("section:has(> h2:text-is('Curves')) h3").allTextContents(), ["Precision and recall", "ROC", "Calibration"]);
    assert.equal(await page.locator("section:has(> h2:text-is('Learning')) svg.chart path.line").count(), 4, "two runs of the group, two charts");
    assert.match(await page.textContent("section:has(> h2:text-is('Settings'))"), /learning_rate0\.0030\.0010\.003/);
    // Suppressed counts are not zero.
    await page.locator("figure:has(h3:text-is('Calibration')) summary").click();
    assert.match(await page.textContent("figure:has(h3:text-is('Calibration')) table"), /70\.0\s% to 80\.0\s%hidden––/);
    // Another figure.
    await page.locator("figcaption select").selectOption("accuracy");
    assert.match(await page.textContent("section:has(> h2:text-is('Side by side'))"), /masked diagnosis with a long name/);
    // Values under the mouse.
    await page.locator("figure:has(h3:text-is('ROC')) svg.chart").hover({ position: { x: 150, y: 60 } });
    assert.match(await page.textContent("figure:has(h3:text-is('ROC')) .readout"), /^false positive rate 0\.\d+: shallow 0\.\d+, gct 0\.\d+$/);
  });

  test("curves of several labels can be chosen, and a masked diagnosis says why it has none", async t => {
    const page = await open(t, report("#overview?run=transformer"));
    assert.match(await page.textContent(".figures"), /d1_m1.*readmission/);
    assert.match(await page.textContent(".facts"), /label d1_m1/);
    assert.deepEqual(await page.locator("section:has(> h2:text-is('Curves')) option").allTextContents(), ["d1_m1", "readmission"]);
    await page.locator("section:has(> h2:text-is('Curves')) select").selectOption("readmission");
    await page.locator("#runs").selectOption({ label: "masked diagnosis with a long name" });
    assert.match(await page.textContent("main"), /has no curve of precision and recall/);
  });

  test("the overview of labels begins with their use", async t => {
    const page = await open(t, report("#overview?run=transformer"));
    const outcome = made.report.runs[1].outcomes[0];
    const table = page.locator("table.thresholds");
    assert.equal(await table.locator("tbody tr").count(), outcome.thresholds.length);
    assert.match(await table.locator("tr.chosen").textContent(), /22\.0\s%sensitivity of at least 65\.0\s%, chosen on validation68\.9\s%64\.9 to 72\.9\s%/);
    assert.match(await page.textContent(".outcomes"), /404 of 5,047 encounters have it, 8\.0\s%/);
    // Bins are points with intervals, and no line.
    const calibration = page.locator("figure:has(h3:text-is('Calibration'))");
    const bins = outcome.calibration.bins.filter(bin => bin.count);
    assert.equal(await calibration.locator("circle.dot").count(), bins.length);
    assert.equal(await calibration.locator("path.interval").count(), bins.length);
    assert.equal(await calibration.locator("svg.chart path.line:not(.diagonal)").count(), 0);
    assert.match(await calibration.textContent(), /slope 0\.91 \(0\.84 to 0\.99\), intercept −0\.12/);
    const decision = page.locator("figure:has(h3:text-is('Decision curve'))");
    assert.match(await decision.textContent(), /alert nobody.*alert everybody.*alert by the model/);
    // Every chart says what its axes are.
    for (const chart of await page.locator("svg.chart:not(.dots)").all()) assert.equal(await chart.locator("text.name").evaluateAll(names => names.filter(name => name.textContent).length), 2);
    const groups = page.locator("table.subgroups");
    assert.equal(await groups.locator("tr.group").count(), 2);
    assert.match(await groups.textContent(), /female2,500200.*0\.780/);
    // How far a metric is from everybody else's; an interval that is not known is left out, and so is a gap.
    const cells = row => groups.locator("tr", { has: page.locator(`bdi:text-is('${row}')`) }).locator("td").allTextContents();
    assert.deepEqual((await cells("male")).slice(2, 4), ["0.7600.720 to 0.800gap 0.011−0.029 to 0.051", "0.4100.370 to 0.450"]);
    assert.equal((await cells("female"))[3], "0.4100.370 to 0.450gap 0.020");
    assert.match(await groups.locator("tr", { hasText: "18-44" }).textContent(), /<11<11––/);
    // Another label has its own.
    await page.locator(".outcomes select").selectOption("readmission");
    assert.match(await page.textContent(".outcomes"), /readmission: 404 of/);
    assert.equal(await page.locator("table.subgroups").count(), 0);
    assert.match(await page.textContent(".facts >> nth=0"), /Intended useResearch\. Not a medical device.*It learned from 39,855 encounters of made-up data/s);
    const provenance = await page.textContent("section:has(> h2:text-is('Provenance'))");
    assert.match(provenance, /gct 0\.1\.0, on 2026-11-18gct report runs\/gct runs\/transformer.*SHA-256 (3fa1){16}.*Platt/);
    await page.goto(report("#overview?run=gct"));
    await page.getByText("at best about 0.814").waitFor();
    assert.equal(await page.locator("table.thresholds").count(), 0);
  });

  test("an encounter is an answer, why, what was in it, where the model looked, and how it does on such patients", async t => {
    const page = await open(t, report("#encounters?run=transformer&encounter=1"));
    await page.waitForSelector(".big");
    assert.deepEqual(await page.locator(".explain h3").allTextContents(), ["The answer", "Why", "What was in the encounter", "Where the model looked", "How the model does on patients like this one"]);
    const answer = page.locator(".answer");
    assert.match(await answer.textContent(), /90\.8\s%above the threshold of 22\.0\s%: an alert/);
    assert.match(await answer.textContent(), /11 times the average of the test part \(8\.0\s%\)/);
    assert.match(await answer.textContent(), /Of 1,000 encounters 230 get an alert\. Of 1,000 such alerts 240 are right \(95\s% interval 200 to 280\)/);
    assert.match(await answer.getByRole("img").getAttribute("aria-label"), /^90\.8\s%, threshold 22\.0\s%, average 8\.0\s%$/);
    const { attributions, nodes } = explanation(made, 1, 0);
    const [first] = attributions[0].changes;
    const called = node => node.description ?? node.code;
    assert.match(await page.textContent(".why"), new RegExp(`Without ${literal(called(first))} it would be 2\\.4\\s% instead of 90\\.8\\s%`));
    assert.equal(await page.locator(".why .pull .for").first().evaluate(bar => bar.style.width), "50%");
    const lines = page.locator(".why tbody tr:visible");
    assert.equal(await lines.count(), Math.min(8, attributions[0].changes.length));
    await page.locator(".why summary").click();
    assert.equal(await lines.count(), attributions[0].changes.length);
    // All codes, names before codes.
    assert.equal(await page.locator(".contents .codes li").count(), nodes.length - 1);
    const described = nodes.find(node => node.description && node.description !== node.code && node.kind !== "diagnosis");
    assert.ok((await page.locator(".contents li").allTextContents()).includes(`${described.description} ${described.code}`));
    assert.match(await page.textContent(".look"), /It is not the reason for the answer/);
    assert.match(await page.textContent(".alike"), /Of the 30 encounters of the test part with a probability between 90\.0\s% and 100\s%, \d+ had it/);
    assert.match(await page.textContent(".alike"), /sex: male/);
    // The other label.
    await page.locator(".explain select").first().selectOption("readmission");
    await at(page, "label=readmission");
    assert.equal(await page.textContent(".label-name"), "readmission");
    assert.doesNotMatch(await answer.textContent(), /What happened/);
    // What is improbable is not impossible.
    await page.goto(report("#encounters?run=transformer&encounter=3"));
    await page.waitForFunction(() => /<0\.001\s%below the threshold/.test(document.querySelector(".big")?.textContent ?? ""));
    assert.match(await page.textContent(".answer"), /Less than a tenth of the average.*have it nevertheless/);
    assert.match(await page.textContent(".why"), /its odds would be 403 times smaller/);
  });

  test("the list mixes, and marks where answer and truth disagree", async t => {
    const page = await open(t, report("#encounters?run=transformer"));
    await page.waitForSelector(".big");
    const run = made.report.runs[1];
    // The highest risk first, and it is open.
    const highest = [...run.encounters].sort((a, b) => b.answers[0].probability - a.answers[0].probability)[0];
    assert.match(await page.textContent(".title h2"), new RegExp(`^Encounter ${highest.number}\\b`));
    const wrong = run.encounters.filter(({ answers: [{ probability, truth }] }) => (probability > 0.22) !== truth).length;
    assert.equal(await page.locator(".row .wrong").count(), wrong);
    assert.equal(await page.locator(".row", { hasText: "✗" }).count(), 0);
    assert.match(await page.textContent(".list"), /shares in this list say nothing/);
    await page.getByLabel("Which encounters").selectOption("risk");
    assert.equal(await page.locator(".row").count(), run.encounters.filter(encounter => encounter.chosen.includes("risk")).length);
    await page.getByLabel("Which encounters").selectOption("");
    assert.equal(await page.locator(".row").count(), run.encounters.length);
  });

  test("names that are alike are told apart in the graph", async t => {
    for (const encounter of [3, 4, 5]) {
      const page = await open(t, report(`#encounters?run=transformer&encounter=${encounter}&view=graph`));
      await drawnGraph(page);
      await page.waitForFunction(encounter => document.querySelector(".title h2")?.textContent.startsWith(`Encounter ${encounter}`), encounter);
      const boxes = await page.locator(".graph .node").evaluateAll(nodes => nodes.map(node => [node.querySelector("text").textContent, node.querySelector("title").textContent, node.getAttribute("class")]));
      for (const [text, title, kind] of boxes) {
        const alike = boxes.filter(([other, name, of]) => other === text && of === kind && name.replace(/ \([^()]*\)$/, "") !== title.replace(/ \([^()]*\)$/, ""));
        assert.deepEqual(alike, [], `${title} is written like others`);
      }
    }
  });

  test("a phone has a list instead of a graph", async t => {
    const page = await open(t, report("#encounters?run=transformer&encounter=5"), { width: 390 });
    await page.waitForSelector(".look table.small");
    assert.equal(await page.locator(".graph").count(), 0);
    assert.equal(await page.locator(".look .choice label:has(> input[value='graph'])").isVisible(), false);
    const { layers, nodes } = explanation(made, 1, 4);
    const last = layers.at(-1).matrix;
    const strongest = last.flatMap((row, i) => row.flatMap((value, j) => i === j ? [] : [[value, i, j]])).sort((a, b) => b[0] - a[0])[0];
    const row = await page.textContent(".look table.small tbody tr >> nth=0");
    assert.ok(row.startsWith(nodes[strongest[1]].description ?? nodes[strongest[1]].code), row);
    await fits(page);
  });

  test("an encounter is drawn by its attention", async t => {
    const page = await open(t, report("#encounters?run=gct&encounter=1"));
    await drawnGraph(page);
    assert.equal(await page.locator(".graph .node").count(), 11);
    assert.match(await page.textContent(".title"), /Encounter 1.*10 codes/);
    const { layers, nodes, edges } = explanation(made, 0, 0);
    // It opens on the answer; edges of the visit are given, and neither found nor missed.
    assert.ok(await page.locator(".choice input[value='answer']").isChecked());
    const hidden = edges.filter(([cause]) => cause > 0);
    const likely = layers[3].matrix.flatMap((row, i) => row.flatMap((value, j) => i < j && value >= 0.5 && nodes[i].kind !== "visit" ? [[i, j]] : []));
    const right = likely.filter(([i, j]) => hidden.some(([a, b]) => Math.min(a, b) === i && Math.max(a, b) === j)).length;
    assert.match(await page.textContent(".pane"), new RegExp(`Of ${hidden.length} true edges between codes ${right} are found.*recall ${(right / hidden.length).toFixed(2)}\\. `
      + `Of the ${likely.length} pairs.*precision ${(right / likely.length).toFixed(2)}, where`));
    assert.equal(await page.locator(".links path.found").count() + await page.locator(".links path.missed").count(), hidden.length);
    assert.doesNotMatch(await page.textContent("table:has(caption:text-is('Most probable connections'))"), /visit/, "that is certain");
    // What is drawn is what the matrix of the last block says, one half of a line for each way.
    await page.locator("label:has(> input[value='block 3'])").click();
    const matrix = layers[2].matrix;
    const strongest = Math.max(...matrix.flatMap((row, i) => row.filter((_, j) => i !== j && i > 0 && j > 0)));
    const first = Number((await page.textContent(".aside tbody tr:first-child td.number")));
    assert.equal(first, Number(strongest.toFixed(2)));
    const widths = await page.locator(".links path.link:not(.missed)").evaluateAll(paths => paths.map(path => Number(path.getAttribute("stroke-width"))));
    assert.equal(Math.max(...widths), 6);
    assert.ok(Math.min(...widths) < 1.5);
    // True edges: all of them, found or missed, and not by colour alone.
    const found = await page.locator(".links path.found").count(), missed = await page.locator(".links path.missed").count();
    assert.equal(found + missed, 2 * hidden.length, "two halves of each");
    assert.equal((await page.locator(".links .true-dots").getAttribute("d")).split("M").length - 1, found / 2);
    // The slider takes weak lines away.
    const lines = await page.locator(".links path.link").count();
    await page.locator(".slider input").fill("60");
    const fewer = await page.locator(".links path.link").count();
    assert.ok(fewer < lines, `${fewer} of ${lines} lines are left`);
    assert.match(await page.textContent(".slider output"), /^0\.\d+$/);
    // Another layer, by keyboard.
    await page.locator(".choice input[value='block 3']").focus();
    await page.keyboard.press("ArrowRight");
    await at(page, "layer=answer");
    await page.locator(".choice input[value='P']").check();
    await at(page, "layer=P");
  });

  test("a node shows what it gives and gets, by mouse and by keyboard", async t => {
    const page = await open(t, report("#encounters?run=gct&encounter=1&layer=block+3"));
    await drawnGraph(page);
    const { layers, nodes } = explanation(made, 0, 0);
    const called = node => node.description ?? node.code;
    await page.locator(".node[data-node='4']").hover();
    assert.match(await page.getAttribute(".graph", "class"), /focused/);
    assert.match(await page.textContent(".look .readout"), new RegExp(`${literal(called(nodes[4]))} \\(treatment.*gives most to`));
    const matrix = layers[2].matrix;
    const partners = nodes.filter((_, other) => other !== 4 && (matrix[4][other] > 0 || matrix[other][4] > 0)).length;
    assert.equal(await page.locator(".aside tbody tr").count(), Math.min(15, partners));
    assert.ok(await page.locator(".tags text").count() > 0);
    assert.ok(await page.locator(".node.far").count() > 0);
    // Numbers are what it gives; the thinner halves at the other ends are what it gets.
    assert.equal(await page.locator(".tags text").count(), matrix[4].filter((value, other) => other !== 4 && value >= 0.01 * Math.max(...matrix[4].filter((_, j) => j !== 4))).length);
    assert.ok(await page.locator(".own path.link").count() > await page.locator(".tags text").count());
    await page.mouse.move(5, 5);
    assert.doesNotMatch(await page.getAttribute(".graph", "class"), /focused/);
    // Keyboard: into the graph, to the first diagnosis, choose it.
    await page.locator(".node[data-node='0']").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await page.textContent(".look .readout"), /\(diagnosis\)/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await at(page, "node=");
    assert.equal(await page.locator(".node[aria-pressed='true']").count(), 1);
    // The long code is whole in the detail line, and short in its box.
    const long = nodes.findIndex(node => node.code === HOSTILE[3]);
    await page.locator(`.node[data-node='${long}']`).focus();
    assert.match(await page.textContent(".look .readout"), /x{120}…x{60}/);
    assert.match(await page.textContent(`.node[data-node='${long}'] text`), /…/);
    assert.ok((await page.getAttribute(`.node[data-node='${long}']`, "aria-label")).includes(HOSTILE[3]));
    await page.keyboard.press("Escape");
    await page.locator(".controls select").selectOption("5");
    await at(page, "node=5");
    await page.locator("label:has(> input[value='bars'])").click();
    assert.match(await page.textContent(".bars caption"), new RegExp(literal(called(nodes[5]))));
    assert.equal(await page.locator(".bars thead th").count(), 1 + layers.length);
  });

  test("the heat map tells the value of a cell", async t => {
    const page = await open(t, report("#encounters?run=gct&encounter=1&view=heat&layer=block+3"));
    const canvas = page.locator(".heat canvas").first();
    await canvas.focus();
    await page.keyboard.press("ArrowDown");
    const { layers, nodes } = explanation(made, 0, 0);
    const value = layers[2].matrix[1][1];
    const called = node => node.description ?? node.code;
    assert.equal(await page.textContent(".look .readout"), `${called(nodes[1])} gives ${value.toFixed(value < 0.0995 ? 3 : 2)} to ${called(nodes[1])}.`);
    const box = await canvas.boundingBox();
    await canvas.hover({ position: { x: box.width - 5, y: box.height - 5 } });
    assert.match(await page.textContent(".look .readout"), new RegExp(`^${literal(called(nodes[10]))} gives`));
    // Something is drawn, and not all of it in one colour.
    const colours = await canvas.evaluate(each => new Set(each.getContext("2d").getImageData(0, 0, each.width, each.height).data).size);
    assert.ok(colours > 20);
  });

  test("encounters are searched, sorted and stepped through", async t => {
    const page = await open(t, pathToFileURL(join(folder, "large.html")).href + "#encounters?run=transformer");
    await drawnGraph(page);
    assert.ok(await page.locator(".row").count() < 60, "only what is visible exists");
    await page.locator(".heads button[data-key='codes']").click();
    assert.equal(await page.textContent(".row >> nth=0 >> span >> nth=1"), "152");
    await page.locator(".heads button[data-key='loss']").click();
    await page.locator(".heads button[data-key='loss']").click();
    const losses = (await page.locator(".row > span:nth-child(5)").allTextContents()).map(Number);
    assert.deepEqual(losses, [...losses].sort((a, b) => a - b));
    await page.locator(".list input").fill("=cmd()");
    assert.match(await page.textContent(".list > p"), /^\d+ of 500 encounters$/);
    await page.locator(".list input").fill("no such code");
    assert.equal(await page.locator(".row").count(), 0);
    await page.locator(".list input").fill("7");
    assert.match(await page.textContent(".row >> nth=0"), /^7/);
    await page.locator(".list input").fill("");
    await page.locator(".heads button[data-key='number']").click();
    assert.equal(await page.getAttribute(".heads button[data-key='number']", "aria-pressed"), "true");
    await page.locator(".row").nth(2).click();
    await at(page, "encounter=3");
    await page.locator(".rows").focus();
    await page.keyboard.press("ArrowDown");
    await at(page, "encounter=4");
    await page.keyboard.press("End");
    await at(page, "encounter=500");
    assert.match(await page.textContent(".row[aria-selected='true']"), /^500/);
    await page.waitForFunction(() => document.querySelector(".title h2")?.textContent.includes("500"));
    await page.locator(".step button").first().click();
    await at(page, "encounter=499");
    await page.goBack();
    await at(page, "encounter=500");
  });

  test("labels of any encounter are legible at any width, and no page is wider than its window", async t => {
    for (const width of [1280, 390]) {
      const page = await open(t, report(), { width });
      for (const run of made.report.runs) {
        for (const section of ["overview", "structure", "map", "encounters"]) {
          await page.goto(report(`#${section}?${new URLSearchParams({ run: run.name })}`));
          await page.waitForTimeout(60);
          await fits(page);
        }
      }
      for (const [name, encounter] of [["gct", 1], ["gct", 2], ["gct", 3], ["gct", 4], ["gct", 5], ["transformer", 5], ["masked diagnosis with a long name", 3], ["shallow", 4]]) {
        for (const view of ["graph", "heat", "bars"]) {
          await page.goto(report(`#encounters?${new URLSearchParams({ run: name, encounter, view })}`));
          await page.waitForFunction(number => document.querySelector(".title h2")?.textContent.startsWith(`Encounter ${number}`) && document.querySelector(".pane > *"), encounter);
          await page.waitForTimeout(30);
          await page.waitForTimeout(60);
          await fits(page);
          if (await page.locator(".graph").count()) assert.deepEqual(await badLabels(page), [], `${name}, encounter ${encounter}, ${width} wide`);
        }
      }
    }
  });

  test("the structure has its charts, and its links are searched, sorted and saved", async t => {
    const page = await open(t, report("#structure?run=gct"));
    assert.equal(await page.locator(".charts.four figure").count(), 4);
    assert.match(await page.textContent("table:has(caption:text-is('Attention and truth by block'))"), /block 3–9\.7000/);
    const rows = page.locator(".links-table tbody tr");
    assert.equal(await rows.count(), 25);
    assert.match(await rows.first().textContent(), /hiddenhidden/);
    await page.locator(".links-table th button", { hasText: "encounters" }).click();
    assert.equal(await page.getAttribute(".links-table th:nth-child(4)", "aria-sort"), "descending");
    await page.locator(".pager button", { hasText: "Next" }).click();
    // Those of few encounters are left out until they are asked for.
    const many = made.report.runs[0].links.filter(link => link.encounters === null || link.encounters >= 10).length;
    assert.match(await page.textContent(".pager"), new RegExp(`26 to 50 of ${many}`));
    await page.locator(".links-section input[type=number]").fill("1");
    assert.match(await page.textContent(".pager"), /1 to 25 of 200/);
    await page.locator(".choice input[value='2']").check();
    const treatments = new Set(made.report.runs[0].codes.kind.flatMap((kind, i) => kind === 2 ? [made.report.runs[0].codes.code[i]] : []));
    assert.ok(treatments.has(await rows.first().locator("td").first().locator("bdi").last().textContent()));
    await page.locator(".choice input[value='all']").check();
    await page.locator(".links-section input[type=search]").fill("=cmd()");
    assert.ok(await rows.count() >= 1);
    const saved = page.waitForEvent("download");
    await page.getByText("Save as CSV").click();
    const download = await saved;
    assert.equal(download.suggestedFilename(), "links-gct.csv");
    const lines = readFileSync(await download.path(), "utf8").replace("\ufeff", "").trim().split("\r\n");
    assert.equal(lines[0], '"cause","cause_description","effect","effect_description","mean_probability","low","high","encounters","truth_known","truly_connected"');
    assert.ok(lines.slice(1).every(line => line.startsWith(`"'=cmd()"`)), lines[1]);
  });

  test("links of attention go from one code to another, and each way is a row", async t => {
    const [run] = made.report.runs.filter(each => each.asks === "labels");
    const page = await open(t, report(`#structure?run=${run.name}`));
    const heads = await page.locator(".links-table th").allTextContents();
    assert.deepEqual(heads, ["from", "to", "mean attention", "encounters"]);
    const links = run.links.filter(link => link.encounters === null || link.encounters >= 10);
    const inRows = place => page.locator(`.links-table tbody td:nth-child(${place}) bdi:last-child`).allTextContents();
    // Hostile names, which are not shown as they are, are diagnoses.
    const kindOf = code => run.codes.kind[run.codes.code.indexOf(code)] ?? 1;
    await page.locator(".choice input[value='1']").check();
    const [from, to] = [(await inRows(1)).map(kindOf), (await inRows(2)).map(kindOf)];
    assert.deepEqual(from.map((kind, i) => kind + to[i]), from.map(() => 3));
    assert.deepEqual([...new Set(from)].sort(), [1, 2], "diagnoses that give to treatments, and treatments that give to diagnoses");
    const both = links.filter(link => Math.min(run.codes.kind[link.from], run.codes.kind[link.to]) === 1).length;
    assert.match(await page.textContent(".pager"), new RegExp(`of ${both}`));
    const saved = page.waitForEvent("download");
    await page.getByText("Save as CSV").click();
    const [heading] = readFileSync(await (await saved).path(), "utf8").replace("\ufeff", "").split("\r\n");
    assert.equal(heading, '"from","from_description","to","to_description","mean_attention","low","high","encounters"');
  });

  test("blocks of several models stand where their names are", async t => {
    const both = structuredClone(made.report);
    both.runs[3].structure = { ...both.runs[0].structure, blocks: ["block 1", "block 2", "block 3"] };
    writeFileSync(join(folder, "both.html"), file(both));
    const page = await open(t, pathToFileURL(join(folder, "both.html")).href + "#structure?run=gct");
    const chart = page.locator(".charts.four figure").nth(1).locator("svg.chart");
    const labels = await chart.locator("text:not(.name)").allTextContents();
    assert.deepEqual(labels.filter(label => /P|block/.test(label)), ["P", "block 1", "block 2", "block 3"]);
    // The first point of the one is not above that of the other.
    const starts = await chart.locator("path.line").evaluateAll(lines => lines.map(line => Number(line.getAttribute("d").match(/^M([\d.]+)/)[1])));
    assert.equal(new Set(starts).size, 2);
  });

  test("the map finds codes and follows what is similar", async t => {
    const page = await open(t, report("#map?run=gct"));
    await page.locator(".aside input").fill("D_");
    await page.locator(".results button").first().click();
    await at(page, "code=");
    assert.equal(await page.locator("ol.results li").count(), 10);
    const title = await page.textContent(".neighbours h3");
    await page.locator("ol.results button").nth(1).click();
    assert.notEqual(await page.textContent(".neighbours h3"), title);
    await page.goBack();
    await page.waitForFunction(title => document.querySelector(".neighbours h3").textContent === title, title);
    await page.locator(".plane canvas").focus();
    for (const key of ["+", "+", "ArrowLeft", "-", "0"]) await page.keyboard.press(key);
    await page.locator(".kind input").first().uncheck();
    await page.locator(".aside input").fill("D_");
    assert.match(await page.textContent("ul.results"), /No such code/);
    await page.locator("label.kind input").first().check();
    const box = await page.locator(".plane canvas").boundingBox();
    for (let x = 20; x < box.width; x += 12) await page.mouse.move(box.x + x, box.y + box.height / 2);
    // One that is not on the map can be found, and says so.
    assert.match(await page.textContent("main"), /Of 430 codes the 429 most frequent are on the map/);
    await page.goto(report("#map?run=gct&code=429"));
    await page.waitForFunction(() => /It is not on the map/.test(document.querySelector(".neighbours").textContent));
    await page.locator("#runs").selectOption({ label: "shallow" });
    assert.match(await page.textContent("main"), /no map of codes/);
  });

  test("what a run does not have is said", async t => {
    const page = await open(t, report("#encounters?run=shallow"));
    await drawnGraph(page);
    assert.match(await page.textContent(".explain"), /does not mix nodes/);
    assert.equal(await page.locator(".links path.found").count(), 10);
    await page.goto(report("#overview?run=empty"));
    assert.match(await page.textContent(".facts"), /<11 encountersall of the data; <11 could not be evaluated/);
    assert.match(await page.textContent(".facts .warning"), /the metrics are too good/);
    await page.goto(report("#overview?run=masked+diagnosis+with+a+long+name"));
    assert.match(await page.textContent(".facts"), /34 of subjects that the run learned from were left out/);
    assert.equal(await page.locator(".facts .warning").count(), 0);
    await page.goto(report("#encounters?run=empty"));
    assert.match(await page.textContent("main"), /No encounters are in this report/);
    await page.goto(report("#structure?run=shallow"));
    assert.match(await page.textContent("main"), /has no attention.*links nothing/s);
    await page.goto(report("#encounters?run=masked+diagnosis+with+a+long+name&encounter=3"));
    await drawnGraph(page);
    assert.equal(await page.locator(".node.hidden").count(), 1);
    assert.match(await page.textContent(".answers"), /right/);
    await page.goto(report("#nowhere?run=nobody&encounter=x"));
    assert.match(await page.textContent("nav [aria-current]"), /Encounters/);
  });

  test("runs, sections and the way back", async t => {
    const page = await open(t, report("#overview?run=gct"));
    await page.getByRole("link", { name: "Encounters" }).click();
    await drawnGraph(page);
    await page.locator("#runs").selectOption({ label: "transformer" });
    await at(page, "run=transformer");
    await page.waitForFunction(() => !document.querySelector(".choice input[value='answer']"));
    await page.goBack();
    await at(page, "run=gct");
    await page.waitForSelector(".choice input[value='answer']");
    await page.goBack();
    await page.waitForSelector("nav [aria-current]:text-is('Overview')");
    // The skip link, by keyboard.
    await page.reload();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    assert.doesNotMatch(await state(page), /main/);
  });

  test("dark and light, by wish of the system and of the reader", async t => {
    const page = await open(t, report("#encounters?run=gct&view=heat"), { theme: "dark" });
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const heat = () => page.locator(".heat canvas").first().evaluate(canvas => [...canvas.getContext("2d").getImageData(canvas.width - 4, canvas.height / 2, 1, 1).data].join());
    await page.waitForSelector(".heat canvas");
    const [dark, darkHeat] = [await paper(), await heat()];
    await page.locator("#theme").click();
    assert.notEqual(await paper(), dark);
    assert.notEqual(await heat(), darkHeat);
    assert.equal(await paper(), "rgb(255, 255, 255)");
  });

  test("prints on white, within the paper", async t => {
    const page = await open(t, report("#encounters?run=gct&encounter=4"), { theme: "dark" });
    await drawnGraph(page);
    await page.emulateMedia({ media: "print" });
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(20, 24, 29)");
    assert.equal(await page.locator(".list").isVisible(), false);
    await page.setViewportSize({ width: 700, height: 1000 });
    await fits(page);
    assert.ok((await page.pdf({ format: "A4" })).length > 10000);
    // The graph of 150 codes is higher than a sheet of 297 mm, and is made smaller.
    await page.goto(report("#encounters?run=gct&encounter=5&view=graph"));
    await drawnGraph(page);
    const height = () => page.evaluate(() => document.querySelector("svg.graph").getBoundingClientRect().height * 25.4 / 96);
    assert.ok(await height() < 250);
    await page.emulateMedia({ media: "screen" });
    await drawnGraph(page);
    assert.ok(await height() > 297);
  });

  test("what is folded on the screen is printed whole", async t => {
    const page = await open(t, report("#encounters?run=transformer&encounter=5"));
    await page.waitForSelector(".contents li");
    const { nodes } = explanation(made, 1, 4);
    const shown = () => page.locator(".contents li:visible").count();
    const before = await shown();
    assert.ok(before < nodes.length - 1);
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => { addEventListener("beforeprint", () => { window.printed = document.querySelectorAll(".explain details:not([open])").length; }); });
    await page.pdf({ format: "A4" });
    assert.equal(await page.evaluate(() => window.printed), 0, "all is open while it is printed");
    await page.emulateMedia({ media: "screen" });
    assert.equal(await shown(), before, "and folded again afterwards");
  });

  test("500 encounters open quickly", async t => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    t.after(() => context.close());
    const page = await context.newPage();
    for (const [hash, ready] of [["", ".big"], ["#overview?run=gct", ".chart path.line"], ["#encounters?run=gct&encounter=4", ".graph .node"]]) {
      await page.goto("about:blank");
      const start = performance.now();
      await page.goto(pathToFileURL(join(folder, "large.html")).href + hash);
      await page.waitForSelector(ready);
      t.diagnostic(`${hash || "the answer"}: ${Math.round(performance.now() - start)} ms`);
    }
  });
});

describe("the server", () => {
  test("the page fetches the report and each encounter when it is looked at", async t => {
    const page = await open(t, live);
    await page.waitForSelector(".big");
    await page.locator("#runs").selectOption({ label: "gct" });
    await page.waitForFunction(() => document.querySelectorAll(".graph .node").length === 11);
    await page.locator(".row").nth(1).click();
    await page.waitForFunction(() => document.querySelectorAll(".graph .node").length === 4);
    await page.locator("#runs").selectOption({ label: "masked diagnosis with a long name" });
    await page.waitForSelector(".node.hidden");
  });

  test("encounters are put together from codes by name", async t => {
    explains = 1;
    t.after(() => { explains = 0; });
    const page = await open(t, live + "#ask?run=transformer");
    const { codes } = made.report.runs[1];
    const field = page.getByRole("combobox", { name: "Add a code" });
    // It begins with codes of an encounter, and nothing is sent before it is asked for.
    const before = asked.length;
    assert.ok(await page.locator(".chip").count() > 0);
    await page.getByRole("button", { name: "Clear" }).click();
    assert.equal(await page.locator(".chip").count(), 0);
    assert.equal(asked.length, before);
    // By words of the name, in any order, with the keyboard.
    await field.fill("tablet 50 metoprolol");
    assert.ok(await page.locator(".options:visible [role=option]").count() > 0);
    for (const name of await page.locator(".options [role=option]").allTextContents()) assert.match(name, /Metoprolol tartrate.*50/);
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.locator("[role=option][aria-selected=true]").count(), 1);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".chip").count(), 1);
    assert.ok(await page.getByText("added.").isVisible());
    await page.getByRole("button", { name: "Explain" }).click();
    await page.waitForSelector(".ask .big");
    const sent = () => asked.at(-1).encounters;
    const treatment = sent()[0].treatment[0];
    assert.match(codes.description[codes.code.indexOf(treatment)], /^Metoprolol/);
    // What has a value asks for it, and the answer follows what is chosen.
    await field.fill("potassium");
    await page.locator(".options [role=option]", { hasText: "with a value" }).first().click();
    await page.getByText("Give a value for").waitFor();
    await page.getByLabel("Value of Potassium").fill("5.6");
    await page.waitForFunction(() => !document.querySelector(".notice.error"));
    for (let i = 0; i < 50 && !sent()[0].lab; i++) await page.waitForTimeout(40);
    assert.deepEqual(sent(), [{ treatment: [treatment], lab: [{ code: "K", value: 5.6 }] }]);
    // Context too; one that is chosen is not offered again; chips can be removed by keyboard.
    await page.locator(".picker .choice label:has(> input[value='4'])").click();
    await field.fill("sex=");
    assert.deepEqual((await page.locator(".options [role=option]").allTextContents()).sort(), ["sex=femalecontext", "sex=malecontext"]);
    await page.keyboard.press("Enter");
    await field.fill("sex=");
    assert.equal(await page.locator(".options:visible [role=option]").count(), 1);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".options:visible [role=option]").count(), 0);
    await page.getByRole("button", { name: /^Remove Metoprolol/ }).focus();
    await page.keyboard.press("Enter");
    for (let i = 0; i < 50 && sent()[0].treatment; i++) await page.waitForTimeout(40);
    assert.deepEqual(Object.keys(sent()[0]).sort(), ["context", "lab"]);
    await field.fill("no such thing");
    assert.match(await page.textContent(".options"), /knows no such code/);
    // The answer and why it is so are there at once.
    assert.match(await page.textContent(".ask .why"), /Without/);
    await page.setViewportSize({ width: 390, height: 800 });
    await fits(page);
  });

  test("encounters of one's own are explained, pasted or from a file; what is wrong is said", async t => {
    const page = await open(t, live + "#ask");
    page.forgiven = ["422"];
    await page.locator(".ask summary").first().click();
    await page.locator("textarea").fill(JSON.stringify({ encounters: [{ diagnosis: ["D_1", "XYZ"] }, { diagnosis: ["D_2"] }] }));
    await page.getByRole("button", { name: "Explain" }).click();
    await drawnGraph(page);
    assert.equal(await page.locator(".graph .node").count(), 11);
    assert.match(await page.textContent(".notice"), /does not know them: diagnosis XYZ\./);
    // The list beside the graph changes under the mouse, at the end of a long page; the graph has to stay where it is.
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.locator(".node[data-node='3']").hover({ timeout: 5000 });
    await page.waitForSelector(".node.near[data-node='3']");
    await page.locator(".title select").selectOption("1");
    await page.waitForFunction(() => document.querySelectorAll(".graph .node").length === 4);
    await page.locator(".look .choice label:has(> input[value='heat'])").click();
    await page.waitForSelector(".heat canvas");
    await page.locator("textarea").fill("{nonsense");
    await page.getByRole("button", { name: "Explain" }).click();
    assert.match(await page.textContent(".notice.error"), /This is not JSON/);
    await page.locator("textarea").fill("[]");
    await page.keyboard.press("Control+Enter");
    await page.getByText("There is no list of encounters in it.").waitFor();
    await page.locator("textarea").fill(JSON.stringify({ encounters: [{ diagnosis: ["TOO MANY"] }] }));
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("too many codes").waitFor();
    assert.match(await page.textContent(".notice.error"), /send fewer/);
    await page.locator("input[type=file]").setInputFiles({ name: "mine.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ encounters: [{ lab: ["L_1"] }] })) });
    // The view that was chosen stays.
    await page.waitForSelector(".heat canvas");
    await page.waitForFunction(() => !document.querySelector(".notice.error"));
    assert.deepEqual(asked.at(-1).encounters, [{ lab: ["L_1"] }]);
    await page.setViewportSize({ width: 390, height: 800 });
    await fits(page);
  });

  test("a token is asked for, sent, and asked for again when it is wrong", async t => {
    secret = "sesame";
    t.after(() => { secret = null; });
    const page = await open(t, live);
    page.forgiven = ["401"];
    await page.locator(".token input").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("does not accept this token").waitFor();
    await page.locator(".token input").fill("sesame");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".big");
    await page.getByRole("link", { name: "Ask" }).click();
    await page.getByRole("button", { name: "Explain" }).click();
    await drawnGraph(page);
    assert.equal(asked.at(-1).token, "Bearer sesame");
    assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length), 0);
  });

  test("a server that is gone is said in words", async t => {
    const page = await open(t, live + "#encounters?run=gct");
    page.forgiven = ["ERR_FAILED", "ERR_CONNECTION", "net::"];
    await drawnGraph(page);
    await page.route("**/encounters/*", route => route.abort());
    await page.locator(".row").nth(1).click();
    await page.getByText("The server does not answer.").waitFor();
  });
});

describe("earlier visits", () => {
  const gru = past.report.runs[0];
  const placeOf = number => gru.encounters.find(encounter => encounter.number === number);
  const cards = page => page.locator(".visits .visit");

  test("stand in a strip, the oldest first, each with its time, its codes and what it does", async t => {
    const page = await open(t, pastReport("#encounters?run=gru&encounter=2"));
    await page.waitForSelector(".visits");
    const { visits, codes, answers, why } = placeOf(2);
    assert.equal(visits.length, 7);
    const times = await page.locator(".visits strong").allTextContents();
    assert.deepEqual(times, ["2,547 days before", "6 visits before", "2,535 days before", "435 days before", "435 days before", "35 days before", "34 days before", "this encounter"]);
    assert.match(await page.textContent(".title p"), /^5 codes, 7 earlier visits/);
    assert.match(await page.textContent(".timeline"), /7 earlier visits are seen\. Below each: what d1_m1/);
    const texts = await cards(page).allTextContents();
    assert.match(texts.at(-1), new RegExp(`^this encounter${codes.length} codesthe answer: `));
    // What speaks for the answer, against it, or does nothing, in words; the bars go to different sides.
    const side = at => cards(page).nth(at).locator(".effect");
    const percent = value => (100 * value).toFixed(1);
    assert.match(await side(6).textContent(), new RegExp(`^speaks for: ${percent(why[0].visits.find(each => each.visits_before === 1).without)}\\s% without it$`));
    assert.match(await side(5).textContent(), /^speaks against: /);
    assert.equal(await side(4).textContent(), "hardly any effect");
    assert.equal(await side(6).locator(".pull .for").count(), 1);
    assert.equal(await side(5).locator(".pull .against").count(), 1);
    assert.equal(await side(6).locator(".pull .for").evaluate(bar => bar.style.width), "50%", "the strongest of them");
    assert.equal(await page.locator(".visits .asked").count(), 1);
    assert.equal(await page.locator(".visits li").last().getAttribute("class"), "asked");
    // The latest are in sight.
    const right = await page.locator(".visits").evaluate(strip => [strip.scrollLeft + strip.clientWidth, strip.scrollWidth]);
    assert.ok(right[1] - right[0] < 2, right.join());
    // The other answer has effects of its own.
    const other = await texts[6];
    await page.locator(".explain select").first().selectOption("readmission");
    await page.waitForFunction(before => document.querySelectorAll(".visit")[6].textContent !== before, other);
    assert.match(await page.textContent(".timeline"), /what readmission/);
    assert.ok(answers[1].what === "readmission");
    await fits(page);
  });

  test("are chosen by mouse and by keyboard, and show their codes with their effects", async t => {
    const page = await open(t, pastReport("#encounters?run=gru&encounter=2"));
    await page.waitForSelector(".visits");
    assert.equal(await page.locator(".visit-codes h4").count(), 0);
    await cards(page).nth(6).click();
    await at(page, "visit=1");
    const { visits, why } = placeOf(2);
    const items = page.locator(".visit-codes li");
    assert.equal(await items.count(), visits[0].codes.length);
    assert.match(await page.textContent(".visit-codes h4"), new RegExp(`^34 days before: ${visits[0].codes.length} codes`));
    // Names before codes, the strongest of a kind first, with its side in words.
    const own = visits[0].codes.map((index, at) => ({ code: gru.codes.code[index], description: gru.codes.description[index], kind: gru.codes.kind[index], effect: why[0].effects[1][at] }));
    const texts = await items.allTextContents();
    const described = own.filter(({ code, description }) => description && description !== code);
    assert.ok(described.length > 3);
    for (const { code, description, effect } of described) {
      const side = Math.abs(effect) < 0.005 ? "hardly any effect" : effect < 0 ? "speaks for: " : "speaks against: ";
      assert.ok(texts.some(text => text.startsWith(`${description} ${code}${side}`)), `${description} ${code}${side}`);
    }
    const labs = own.filter(({ kind }) => kind === 3).sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
    const shown = await page.locator(".visit-codes .kinds > div", { hasText: "Labs (" }).locator("li").allTextContents();
    assert.ok(labs.every(({ code }, at) => shown[at].includes(code)), shown.join());
    assert.equal(await page.locator(".visit-codes .effect").count(), why[0].effects[1].filter(effect => effect !== null).length);
    assert.equal(await cards(page).nth(6).getAttribute("aria-pressed"), "true");
    // The same again closes it. Arrows go through the strip, and the chosen one keeps the focus.
    await cards(page).nth(6).click();
    await page.waitForFunction(() => !document.querySelector(".visit-codes h4"));
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await at(page, "visit=3");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.visit), "3");
    await page.keyboard.press("End");
    await page.keyboard.press(" ");
    await at(page, "visit=0");
    assert.match(await page.textContent(".visit-codes h4"), /^This encounter: 5 codes/);
    assert.equal(await page.locator(".visits [tabindex='0']").count(), 1);
    // A link leads back, and another encounter has other visits.
    await page.reload();
    await page.waitForSelector(".visit-codes h4");
    await page.locator(".row").nth(0).click();
    await page.waitForFunction(() => !location.hash.includes("visit="));
    assert.equal(await page.locator(".visit-codes h4").count(), 0);
    await page.goBack();
    await at(page, "visit=0");
    await page.waitForSelector(".visit-codes h4");
  });

  test("are named beside the codes that an answer rests on", async t => {
    const page = await open(t, pastReport("#encounters?run=gru&encounter=2"));
    await page.waitForSelector(".why table");
    await page.locator(".why summary").click();
    const { why } = placeOf(2);
    const shown = await page.locator(".why tbody th .what").allTextContents();
    assert.equal(shown.length, why[0].changes.length);
    why[0].changes.forEach(({ visits_before: back }, at) => {
      assert.equal(/ · (\d+) visits? before$/.exec(shown[at])?.[1] ?? "0", String(back));
    });
    assert.ok(shown.some(text => text.endsWith(" · 2 visits before")) && shown.some(text => text.endsWith(" · 1 visit before")));
    assert.match(await page.textContent(".why"), /of 1 visit before it would be/);
    assert.match(await page.textContent(".why"), /without this one code of one visit/);
    assert.match(await page.textContent(".look"), /This is about the encounter alone/);
    assert.match(await page.textContent(".look"), /Attention is how much/);
  });

  test("are none, or not told", async t => {
    const page = await open(t, pastReport("#encounters?run=gru&encounter=1"));
    await page.waitForSelector(".timeline");
    assert.equal(placeOf(1).visits.length, 0);
    assert.match(await page.textContent(".timeline"), /there is none before this encounter/);
    assert.equal(await page.locator(".visits").count(), 0);
    await page.goto(pastReport("#overview?run=gru"));
    await page.waitForSelector(".facts");
    assert.match(await page.textContent(".facts"), /Earlier visitsup to 7 before the encountera gated recurrent unit/);
    await page.goto(pastReport("#overview?run=next"));
    await page.getByText("of 365 days").waitFor();
    // Without history nothing speaks of visits.
    const without = await open(t, report("#encounters?run=transformer&encounter=1"));
    await without.waitForSelector(".big");
    assert.equal(await without.locator(".timeline").count(), 0);
    assert.doesNotMatch(await without.textContent("main"), /earlier visit|visits? before/);
    await without.goto(report("#overview?run=transformer"));
    await without.waitForSelector(".facts");
    assert.doesNotMatch(await without.textContent(".facts"), /Earlier visits/);
  });

  test("stand below each other on a phone, in the dark, and on paper", async t => {
    const page = await open(t, pastReport("#encounters?run=gru&encounter=2&visit=1"), { width: 390, theme: "dark" });
    await page.waitForSelector(".visit-codes h4");
    const boxes = await cards(page).evaluateAll(all => all.map(card => card.getBoundingClientRect()).map(({ left, top, width }) => [left, top, width]));
    assert.ok(boxes.every(([left], at) => left === boxes[0][0] && (!at || boxes[at][1] > boxes[at - 1][1])), "one below the other");
    assert.ok(boxes[0][2] > 290);
    await fits(page);
    await page.setViewportSize({ width: 700, height: 1000 });
    await page.emulateMedia({ media: "print" });
    await fits(page);
    const strip = await page.locator(".visits").evaluate(strip => [strip.scrollWidth, strip.clientWidth]);
    assert.ok(strip[0] <= strip[1] + 1, "no visit is outside of the paper");
    assert.equal(await cards(page).evaluateAll(all => all.filter(card => getComputedStyle(card).display === "none").length), 0);
    assert.equal(await page.locator(".hint").isVisible(), false);
    assert.ok(await page.locator(".visit-codes").isVisible());
  });

  test("of a server come with the encounter", async t => {
    const page = await open(t, `${livePast}#encounters?run=gru&encounter=2`);
    await page.waitForSelector(".visits");
    assert.equal(await cards(page).count(), 8);
    await cards(page).nth(6).click();
    assert.equal(await page.locator(".visit-codes .effect").count(), placeOf(2).visits[0].codes.length);
    assert.match(await page.locator(".visit-codes .effect").first().textContent(), /^speaks (for|against): /);
  });

  test("are asked about: another picker for each, with days", async t => {
    const page = await open(t, `${livePast}#ask?run=gru`);
    page.forgiven = ["422"];
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("combobox", { name: "Add a code", exact: true }).fill("sex=female");
    await page.keyboard.press("Enter");
    const add = page.getByRole("button", { name: "Add an earlier visit" });
    await add.click();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Days from earlier visit 1 to the encounter");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("Say how many days before the encounter earlier visit 1 was").waitFor();
    const days = number => page.getByLabel(`Days from earlier visit ${number} to the encounter`);
    await days(1).fill("12");
    await page.getByRole("combobox", { name: "Add a code of earlier visit 1" }).fill("tablet 50 metoprolol");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.waitForSelector(".ask .timeline");
    const sent = () => asked.at(-1).encounters[0];
    const between = visit => (Date.parse(sent().start) - Date.parse(visit.start)) / 864e5;
    assert.deepEqual(Object.keys(sent()).sort(), ["context", "start", "visits"]);
    assert.match(sent().start, /^\d{4}-\d\d-\d\d$/);
    assert.deepEqual(sent().visits.map(between), [12]);
    assert.match(gru.codes.description[gru.codes.code.indexOf(sent().visits[0].treatment[0])], /^Metoprolol/);
    assert.deepEqual(await page.locator(".visits strong").allTextContents(), ["12 days before", "this encounter"]);
    // A second one, older; the answer follows. Two of the same day are refused before they are sent.
    await add.click();
    await days(2).fill("12");
    await page.getByText("Two earlier visits are of the same day").waitFor();
    await days(2).fill("400");
    await page.waitForFunction(() => document.querySelectorAll(".visits strong").length === 3);
    assert.deepEqual(sent().visits.map(between), [400, 12], "the oldest first");
    assert.match(await page.textContent(".ask .why"), /visit before/);
    // One is taken away again, and the other one is the first.
    await page.getByRole("button", { name: "Remove this visit" }).first().click();
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Add an earlier visit");
    await page.waitForFunction(() => document.querySelectorAll(".visits strong").length === 2);
    assert.deepEqual(sent().visits.map(between), [400]);
    assert.equal(await page.locator(".earlier h4").first().textContent(), "Earlier visit 1");
    // No more than the model sees.
    for (let i = 0; i < 6; i++) await add.click();
    assert.ok(await add.isDisabled());
    assert.ok(await page.getByText("The model sees 7 earlier visits at most.").isVisible());
    await page.getByRole("button", { name: "Clear" }).click();
    assert.equal(await page.locator(".earlier > li").count(), 0);
    await page.waitForTimeout(400);
    assert.deepEqual(Object.keys(sent()), [], "nothing of before is left");
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 390, height: 800 });
    await add.click();
    await fits(page);
  });

  test("that the model does not see are told", async t => {
    explains = 1;
    t.after(() => { explains = 0; });
    const page = await open(t, `${livePast}#ask?run=next`);
    const add = page.getByRole("button", { name: "Add an earlier visit" });
    await page.getByText("The model sees visits of the 365 days before the encounter").waitFor();
    const send = async (...days) => {
      await page.getByRole("button", { name: "Clear" }).click();
      await page.keyboard.press("Escape");
      for (const [at, one] of days.entries()) {
        await add.click();
        await page.getByLabel(`Days from earlier visit ${at + 1}`).fill(String(one));
      }
      await page.getByRole("button", { name: "Explain" }).click();
    };
    await send(12, 400);
    await page.waitForFunction(() => document.querySelectorAll(".visits strong").length === 2);
    assert.match(await page.textContent(".timeline"), /One earlier visit is seen\..*1 visit is not seen: the model sees the latest 7 of those that began at most 365 days before this encounter and were over when it began\./);
    await send(12, 30);
    await page.waitForFunction(() => document.querySelectorAll(".visits strong").length === 3);
    assert.equal(await page.locator(".unseen").count(), 0);
    // Where none is seen, it does not say that there was none.
    await send(400, 500);
    await page.getByText("2 visits are not seen").waitFor();
    assert.doesNotMatch(await page.textContent(".timeline"), /there is none/);
  });

  test("are not offered where the run sees none", async t => {
    const page = await open(t, `${livePast}#ask?run=new`);
    await page.waitForSelector(".picker");
    assert.equal(await page.getByRole("button", { name: "Add an earlier visit" }).count(), 0);
  });
});

describe("the next visit", () => {
  test("has its most probable diagnoses, and what became of them", async t => {
    const page = await open(t, pastReport("#encounters?run=next&encounter=4"));
    await page.waitForSelector(".answers");
    const { answers, next } = past.report.runs[1].encounters[3];
    const found = answers.filter(answer => answer.truth).length;
    assert.match(await page.textContent(".answer h3"), /^The most probable diagnoses of the next visit$/);
    assert.match(await page.textContent(".answer"), new RegExp(`The next visit has ${next.length} diagnoses; ${found} of them are among these 10\\.`));
    assert.equal(await page.locator(".answers tbody tr").count(), 10);
    assert.deepEqual((await page.locator(".answers td:last-child").allTextContents()).map(text => text === "● yes"), answers.map(answer => answer.truth));
    assert.match(await page.textContent(".missed"), /^In the next visit, and not among these: .+, .+\.$/);
    assert.doesNotMatch(await page.textContent(".answer"), /missed,|false alert|right/);
    // The reasons of each of the ten can be had, and the strip follows.
    const select = page.locator(".why select");
    assert.equal(await select.locator("option").count(), 10);
    const before = await page.textContent(".timeline p");
    await select.selectOption("2");
    assert.notEqual(await page.textContent(".timeline p"), before);
    assert.equal(await select.evaluate(own => own.value), "2", "what was chosen stays");
  });

  test("is not known of an encounter of one's own", async t => {
    explains = 2;
    t.after(() => { explains = 0; });
    for (const encounter of past.report.runs[2].encounters) delete encounter.next;
    const unknown = structuredClone(past.whole[2]);
    past.whole[2].forEach(encounter => encounter.answers.forEach(answer => { answer.truth = null; }));
    t.after(() => { past.whole[2] = unknown; });
    const page = await open(t, `${livePast}#ask?run=new`);
    await page.getByRole("button", { name: "Explain" }).click();
    await page.waitForSelector(".ask .answers");
    assert.match(await page.textContent(".answer h3"), /^The most probable new diagnoses of the next visit$/);
    assert.match(await page.textContent(".answer"), /Which diagnoses the next visit has is not known here\./);
    assert.equal(await page.locator(".answers thead th").count(), 2);
    assert.equal(await page.locator(".timeline").count(), 0);
  });

  test("has metrics with names", async t => {
    const page = await open(t, pastReport("#overview?run=new"));
    const figures = await page.textContent(".figures");
    for (const name of ["recall@10", "recall@20", "recall@30", "AUCPR", "log loss"]) assert.ok(figures.includes(name), name);
    assert.match(figures, /Share of the diagnoses of the next visit that are among the 20 most probable, the mean over encounters\./);
    assert.match(await page.textContent(".facts"), /next diagnoses, new ones aloneWhich diagnoses does the next visit have that no visit before it has\?/);
    assert.match(await page.textContent("section:has(> h2:text-is('Learning'))"), /recall@20 on validation/);
    assert.match(await page.textContent("main"), /how many of them are found is told above/);
  });
});

/** The same walk through a page whose content is not known beforehand. */
async function walk(t, address) {
  for (const [width, theme] of [[1280, "light"], [390, "dark"]]) {
    const page = await open(t, address, { width, theme });
    await fits(page);
    const runs = Math.max(1, await page.locator("#runs option").count());
    for (let run = 0; run < runs; run++) {
      if (runs > 1) await page.locator("#runs").selectOption(String(run));
      await page.getByRole("link", { name: "Overview" }).click();
      assert.ok(await page.locator(".figures tbody tr").count() > 0);
      await fits(page);
      await page.getByRole("link", { name: "Structure" }).click();
      await page.waitForTimeout(60);
      await fits(page);
      await page.getByRole("link", { name: "Map" }).click();
      await page.waitForTimeout(60);
      await fits(page);
      await page.getByRole("link", { name: "Encounters" }).click();
      if (!await page.locator(".row").count()) continue;
      await page.waitForSelector(".answer");
      assert.ok(await page.locator(".contents li").count() > 0);
      if (await page.locator(".visits").count()) {
        await page.locator(".visit").first().click();
        await page.waitForSelector(".visit-codes h4");
        await fits(page);
      }
      const hasGraph = width > 560 || !await page.locator(".choice input[value='heat']").count();
      const drawn = () => hasGraph ? drawnGraph(page) : page.waitForSelector(".look table");
      await drawn();
      if (hasGraph) assert.deepEqual(await badLabels(page), []);
      if (await page.getByText("Choose another encounter").isVisible()) await page.getByText("Choose another encounter").click();
      await page.locator(".heads button[data-key='codes']").click();
      await page.locator(".row").first().click();
      const many = await page.textContent(".row >> nth=0 >> span >> nth=1");
      await page.waitForFunction(many => document.querySelector(".title p")?.textContent.startsWith(`${many} codes`), many);
      await drawn();
      if (hasGraph) {
        assert.deepEqual(await badLabels(page), []);
        await page.locator(".node").nth(1).focus();
        assert.match(await page.textContent(".look .readout"), /diagnosis|treatment|lab|context/);
      }
      await fits(page);
      for (const layer of await page.locator(".look .choice >> nth=0 >> input").all()) {
        if (await layer.isVisible()) await layer.check();
      }
      if (await page.locator(".choice input[value='heat']").count()) {
        await page.locator(".choice input[value='heat']").check();
        await page.waitForSelector(".heat canvas");
        await fits(page);
        await page.locator(".choice input[value='bars']").check();
        await page.waitForSelector("table.bars");
        await fits(page);
        await page.locator(".choice input[value='list']").check();
        await page.waitForSelector(".look table.small");
        await fits(page);
        if (hasGraph) await page.locator(".choice input[value='graph']").check();
      }
    }
    if (await page.getByRole("link", { name: "Ask" }).count()) {
      await page.getByRole("link", { name: "Ask" }).click();
      const add = page.getByRole("button", { name: "Add an earlier visit" });
      const hasHistory = await add.count() > 0;
      if (hasHistory) {
        await add.click();
        await page.getByLabel("Days from earlier visit 1").fill("30");
        await page.getByRole("combobox", { name: "Add a code of earlier visit 1" }).fill("1");
        await page.keyboard.press("Enter");
      }
      await page.getByRole("button", { name: "Explain" }).click();
      await page.waitForSelector(".ask .explain .answer");
      if (hasHistory) assert.deepEqual(await page.locator(".ask .visits strong").allTextContents(), ["30 days before", "this encounter"]);
      await fits(page);
    }
  }
}

describe("the walk", () => {
  test("through the file of the fixture", t => walk(t, report()));
  test("through the server of the fixture", t => walk(t, live));
  test("through the file with earlier visits", t => walk(t, pastReport()));
  test("through the server with earlier visits", t => walk(t, livePast));
  test("through a report of gct", { skip: !process.env.GCT_REPORT && "GCT_REPORT is not set" }, t => walk(t, pathToFileURL(process.env.GCT_REPORT).href));
  test("through a server of gct with earlier visits", { skip: !process.env.GCT_SERVE_HISTORY && "GCT_SERVE_HISTORY is not set" },
    t => walk(t, new URL(process.env.GCT_SERVE_HISTORY).href));
  test("through a server of gct", { skip: !process.env.GCT_SERVE && "GCT_SERVE is not set" }, t => walk(t, new URL(process.env.GCT_SERVE).href));
});
