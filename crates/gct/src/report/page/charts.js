// Charts in SVG. Lines differ by dash as well as by colour, and each chart is also a table.

/** Round numbers in a range, and how many digits they need. */
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= raw * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step * 1.001)));
  const values = [];
  for (let i = Math.ceil(low / step - 1e-6); i * step <= high + step * 1e-6; i++) values.push(i * step || 0);
  return { values, digits, step };
}

/** A range that holds all values, widened to round numbers. */
function rangeOf(values, least = Infinity, most = -Infinity) {
  const low = values.reduce((a, b) => Math.min(a, b), least);
  const high = values.reduce((a, b) => Math.max(a, b), most);
  if (!(high > low)) return known(low) ? [low - 0.5, low + 0.5] : [0, 1];
  const { step } = ticks(low, high, 5);
  return [Math.floor(low / step + 1e-6) * step, Math.ceil(high / step - 1e-6) * step];
}

/**
 * Lines over a plane: {title, note, x: {name, range, names}, y: {name, range}, series: [{name, look, strong, points}], diagonal, bars}.
 * `look` is the place in the palette; `bars` are shares under the lines, by range of x; `rows` makes another table than that of points.
 */
function lineChart(options) {
  const { title, note, series } = options;
  const readout = h("p.readout.muted", { "aria-hidden": "true" });
  const drawing = sized("div", width => drawLines(options, width, readout));
  const points = h("details", h("summary", "As a table"));
  points.addEventListener("toggle", () => {
    if (points.open && points.children.length === 1) points.append((options.rows ?? pointTable)(options));
  });
  return h("figure", h("figcaption", h("h3", title), note && h("p.muted", note)), drawing,
    legend(series.length > 1 || options.diagonal ? series.filter(line => !line.intervals).map(line => [line.name, `series-${line.look}`, line.strong]) : [], options.diagonal),
    readout, points);
}

function pointTable({ title, x, y, series }) {
  const rows = series.flatMap(line => line.points.map(point => ({ name: line.name, point })));
  const at = value => x.names ? clean(x.names[value]) : figure(value, x.digits ?? 3);
  return table(title, [
    { name: "line", cell: row => clean(row.name) },
    { name: x.name, number: true, cell: row => at(row.point[0]) },
    { name: y.name, number: true, cell: row => figure(row.point[1]) },
  ], rows);
}

function legend(names, diagonal) {
  const item = ([name, look, strong]) => h("li", h("span.swatch", s("svg", { width: 26, height: 8, "aria-hidden": "true" },
    s(`path.line.${look}${strong ? ".strong" : ""}`, { d: "M1 4H25" }))), clean(name));
  return h("ul.legend", names.map(item), diagonal && item([diagonal, "diagonal"]));
}

function drawLines({ title, x, y, series, diagonal, bars, height = 240 }, width, readout) {
  const points = series.flatMap(line => line.points);
  const [left, top, right, bottom] = [48, 26, width - 14, height - 36];
  const [x0, x1] = x.range ?? rangeOf(points.map(point => point[0]));
  const [y0, y1] = y.range ?? rangeOf(points.map(point => point[1]));
  const across = value => left + (value - x0) / (x1 - x0) * (right - left);
  const up = value => bottom - (value - y0) / (y1 - y0) * (bottom - top);
  const yTicks = ticks(y0, y1, 5);
  const xTicks = x.names ? { values: x.names.map((_, i) => i) } : ticks(x0, x1, width < 300 ? 3 : 5);
  const xLabel = value => x.names ? shortened(x.names[value], 11, (right - left) / x.names.length + 10)
    : xTicks.step >= 1 ? integer(value) : value.toFixed(xTicks.digits);
  const anchor = value => across(value) > right - 12 ? "end" : "middle";
  const drawing = s("svg.chart", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": describe(title, series) },
    bars?.map(({ low, high, share: size }) => s("rect.count", {
      x: across(low) + 0.5, width: Math.max(0, across(high) - across(low) - 1), y: bottom - size * (bottom - top), height: size * (bottom - top),
    })),
    // Above its axis, where it needs no room beside the numbers and no turned head.
    s("text.name", { x: 0, y: 12 }, y.name),
    yTicks.values.map(value => [s("path.grid", { d: `M${left} ${up(value)}H${right}` }),
      s("text", { x: left - 6, y: up(value) + 4, "text-anchor": "end" }, value.toFixed(yTicks.digits))]),
    xTicks.values.map(value => s("text", { x: across(value), y: bottom + 16, "text-anchor": anchor(value) }, xLabel(value))),
    s("path.axis", { d: `M${left} ${bottom}H${right}` }),
    s("text.name", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, x.name),
    diagonal && s("path.line.diagonal", { d: `M${across(x0)} ${up(Math.max(y0, x0))}L${across(x1)} ${up(Math.min(y1, x1))}` }));
  for (const line of series) {
    if (line.intervals) {
      // Points of their own, each with its interval: few encounters make no line.
      line.points.forEach(([a, b], i) => {
        const [low, high] = line.intervals[i] ?? [];
        if (known(low) && known(high)) drawing.append(s("path.interval", { d: `M${across(a)} ${up(low)}V${up(high)}m-3 0h6M${across(a) - 3} ${up(low)}h6` }));
        drawing.append(s("circle.dot", { cx: across(a), cy: up(b), r: 4 }));
      });
      continue;
    }
    const path = line.points.map(([a, b], i) => `${i ? "L" : "M"}${across(a).toFixed(1)} ${up(b).toFixed(1)}`).join("");
    drawing.append(s(`path.line.series-${line.look}${line.strong ? ".strong" : ""}`, { d: path }));
    if (line.points.length <= 20 && !line.plain) {
      for (const [a, b] of line.points) drawing.append(s(`circle.point.series-${line.look}`, { cx: across(a), cy: up(b), r: line.strong ? 3 : 2 }));
    }
  }
  const rule = s("path.rule");
  drawing.append(rule);
  drawing.addEventListener("pointermove", event => {
    const shown = event.clientX - drawing.getBoundingClientRect().left;
    const wanted = x0 + (shown / drawing.getBoundingClientRect().width * width - left) / (right - left) * (x1 - x0);
    const near = series.filter(line => line.points.length).map(line => [line.name, line.points.reduce((best, point) =>
      Math.abs(point[0] - wanted) < Math.abs(best[0] - wanted) ? point : best)]);
    if (!near.length) return;
    rule.setAttribute("d", `M${across(near[0][1][0])} ${top}V${bottom}`);
    const place = near[0][1][0];
    readout.textContent = `${x.names ? clean(x.names[place]) : `${x.name} ${xTicks.step >= 1 ? integer(Math.round(place)) : figure(place, 3)}`}: ${
      near.map(([name, point]) => `${clean(name)} ${figure(point[1], 3)}`).join(", ")}`;
  });
  drawing.addEventListener("pointerleave", () => { rule.removeAttribute("d"); readout.textContent = ""; });
  return drawing;
}

function describe(title, series) {
  const ends = series.map(line => line.points.length
    ? `${clean(line.name)} from ${figure(line.points[0][1], 3)} to ${figure(line.points.at(-1)[1], 3)}` : `${clean(line.name)}: nothing to show`);
  return `${title}. ${ends.join("; ")}.`;
}

/** The largest number on an axis of shares that are rare: a round one. */
const roomFor = most => [0.05, 0.1, 0.2, 0.3, 0.5].find(end => most <= end) ?? 1;

/** One figure of several runs, each with its interval; what comes from the paper is a hollow diamond, the best that any model can reach a line. */
function dotChart(title, rows) {
  const values = rows.flatMap(row => [row.value, row.low, row.high]).filter(known);
  return sized("div", width => {
    const room = Math.min(width * 0.4, 20 + Math.max(...rows.map(row => textWidth(clean(row.name), 12))));
    const [left, right, pitch] = [room, width - 56, 26];
    const range = rangeOf(values);
    const { values: marks, digits } = ticks(...range, width < 500 ? 3 : 6);
    const across = value => left + (value - range[0]) / (range[1] - range[0]) * (right - left);
    const height = rows.length * pitch + 26;
    const line = (row, place) => {
      const y = place * pitch + 14;
      const label = s("text", { x: 0, y: y + 4 }, shortened(row.name, 12, room - 12), s("title", clean(row.name)));
      if (!known(row.value)) return [label, s("text", { x: left, y: y + 4 }, DASH)];
      const cx = across(row.value);
      return [label,
        known(row.low) && known(row.high) &&
          s("path.interval", { d: `M${across(row.low)} ${y}H${across(row.high)}m0-4v8M${across(row.low)} ${y - 4}v8` }),
        row.paper ? s("path.paper", { d: `M${cx} ${y - 5}l5 5l-5 5l-5 -5z` }) : s("circle.dot", { cx, cy: y, r: row.strong ? 5 : 4 }),
        s("text.value", { x: width, y: y + 4, "text-anchor": "end" }, figure(row.value))];
    };
    return s("svg.chart.dots", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `${title}: ${rows.map(row => `${clean(row.name)} ${figure(row.value)}`).join(", ")}.` },
    marks.map(value => [s("path.grid", { d: `M${across(value)} 2V${height - 22}` }),
      s("text", { x: across(value), y: height - 6, "text-anchor": "middle" }, value.toFixed(digits))]),
    rows.map(line));
  });
}
