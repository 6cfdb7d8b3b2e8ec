// The page's state, its colours, and what all parts of it need. The scripts beside this one are joined after it.

const at = (id) => document.getElementById(id);

let data = JSON.parse(at("data").textContent);

/** Labels of the selectors whose lines are switched off. */
const switchedOff = new Set();

/** The selectors of a world, each once: one that a later run only repeats is left out. */
function seriesOf(world) {
  return world.runs.flatMap((runIndex) =>
    data.runs[runIndex].selectors
      .map((selector, index) => ({ run: data.runs[runIndex], runIndex, selector, index, name: selector.name, label: selector.label, look: selector.look }))
      .filter((one) => !one.selector.repeated),
  );
}

const allSeries = () => data.worlds.flatMap(seriesOf);
const shownSeries = (world) => seriesOf(world).filter((one) => !switchedOff.has(one.label));

const COLOURS = 9;
const PATTERNS = ["solid", [8, 4], [2, 3], [11, 3, 2, 3]];
const patternOf = (one) => PATTERNS[one.look[1]];
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

/** The colours of the page as it is now, light or dark. */
function inkNow() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const series = Array.from({ length: COLOURS }, (_, number) => read(`series-${number}`));
  const names = ["page", "text", "soft", "line", "panel", "accent", "lit"];
  return { ...Object.fromEntries(names.map((name) => [name, read(name)])), series, of: (one) => series[one.look[0]] };
}

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Text that HTML shows and never obeys. */
const safe = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const figureText = (value, digits = 4) => (value === null || value === undefined ? "–" : value.toFixed(digits));

/** A short piece of a selector's line into each empty key of the page. */
function paintKeys() {
  for (const key of document.querySelectorAll(".key[data-dash]")) {
    if (key.firstChild) continue;
    const pattern = PATTERNS[key.dataset.dash];
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const attributes = { x1: 0, x2: 36, y1: 6, y2: 6, stroke: "currentColor", "stroke-width": 3 };
    for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
    if (pattern !== "solid") line.setAttribute("stroke-dasharray", pattern.join(" "));
    drawing.setAttribute("viewBox", "0 0 36 12");
    drawing.setAttribute("aria-hidden", "true");
    drawing.append(line);
    key.append(drawing);
  }
}

// Saving.

function download(name, content, kind) {
  const address = URL.createObjectURL(new Blob([content], { type: kind }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function fileName(what, ending) {
  const words = `${document.title} ${what}`.toLowerCase().match(/[a-z0-9]+/g) || ["chart"];
  return `${words.join("-").slice(0, 80)}.${ending}`;
}

/** One cell of a CSV file. Text that a spreadsheet would take for a formula gets a quote in front. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const csvText = (rows) => rows.map((row) => row.map(csvCell).join(",") + "\n").join("");

/** The rows of a table of the page, with figures in full and half-widths in columns of their own. */
function tableRows(table) {
  const figures = (row) => ({ cells: [...row.cells].filter((cell) => !cell.classList.contains("strip")) });
  const body = [...table.tBodies[0].rows].map(figures);
  const heads = figures(table.tHead.rows[0]).cells.map((cell) => cell.textContent);
  const wide = heads.map((_, column) => body.some((row) => row.cells[column].dataset.h !== undefined));
  const own = (cell) => [...cell.childNodes].filter((node) => !["note", "place"].includes(node.className)).map((node) => node.textContent).join("").trim();
  const rows = body.map((row) =>
    [...row.cells].flatMap((cell, column) => {
      const first = cell.dataset.v === undefined ? own(cell) : Number(cell.dataset.v);
      return wide[column] ? [first, cell.dataset.h === undefined ? null : Number(cell.dataset.h)] : [first];
    }),
  );
  return [heads.flatMap((head, column) => (wide[column] ? [head, `${head} ±`] : [head])), ...rows];
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-table]");
  if (button) download(fileName(button.dataset.table, "csv"), csvText(tableRows(at(button.dataset.table))), "text/csv");
});
