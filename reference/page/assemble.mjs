// Puts the page together as the program does: a file with everything in it, or a server's page with files beside it.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = new URL("../../crates/gct/src/report/page/", import.meta.url);
const read = name => readFileSync(fileURLToPath(new URL(name, folder)), "utf8");

const html = read("page.html");
export const style = read("page.css");
/** The order of the scripts stands in the page itself. */
export const script = html.match(/joined in this order:\s+([\w.\s]+?)\s*-->/)[1].split(/\s+/).map(read).join("\n");

const hash = text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const fill = parts => html.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
const json = value => JSON.stringify(value).replace(/</g, "\\u003c");

export function file(report) {
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;
  return fill({
    policy: `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    style: `<style>${style}</style>`, script: `<script>${script}</script>`, data: json(report),
  });
}

export function livePage() {
  return fill({ policy: "", style: '<link rel="stylesheet" href="page/page.css">', script: '<script src="page/page.js"></script>', data: json({ live: true }) });
}

export const livePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
