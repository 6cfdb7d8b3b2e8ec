// The map: the square with server, clients and graph, one panel for each run, moved through the slots by one slider.

const KINDS = { opinion: "opinion", belief: "belief", share: "selection share" };
const LABELLED_CLIENTS = 60;
const ROOM_FOR_TWO = 900; // pixels of width from which a single run is shown on two maps, its first and its last selector
const MOST_PANELS = 4;
const CANVAS_FROM = 300; // more clients than this are drawn on a canvas, which is faster than SVG

/**
 * kind: what the colour shows; stop: which of the slots; timer: of the play button; offered: the runs that the panels were made
 * for; chosen: what the panels showed, by name, while there is nothing to draw.
 */
const mapView = { kind: "opinion", stop: -1, timer: null, offered: [], chosen: [] };
const panels = [];
let panelsMade = 0;

/** The slots that the slider visits: those that the map of any run holds. */
function stops() {
  return [...new Set(data.runs.flatMap((run) => run.map.slots))].sort((a, b) => a - b);
}

const slotNow = () => stops()[mapView.stop] ?? 0;

class Panel {
  constructor(runIndex, index = 0, trial = 0) {
    Object.assign(this, { runIndex, index, trial });
    this.choices = element("div", { className: "controls" });
    this.words = element("p", { className: "words", "aria-live": "polite" });
    this.table = element("table", {});
    this.details = element("details", {}, element("summary", { textContent: "All clients in this slot" }), element("div", { className: "scroll", tabIndex: 0 }, this.table));
    this.details.ontoggle = () => this.fill();
    this.figure = element("figure", { className: "panel" }, this.choices, this.words);
    at("maps").append(this.figure);
    this.chart = new Chart(this.figure, {
      name: `Map ${++panelsMade}`,
      build: (ink) => this.option(ink),
      rows: () => this.rows(),
      height: (width) => width - ROOM_BESIDE_MAP.left - ROOM_BESIDE_MAP.right + ROOM_BESIDE_MAP.top + ROOM_BESIDE_MAP.bottom,
      many: this.run.map.clients.length > CANVAS_FROM,
    });
    this.figure.append(this.details);
  }

  get run() {
    return data.runs[this.runIndex];
  }

  /** What it shows, by name: places in the list of runs and selectors may change. */
  get choice() {
    const run = mapView.offered[this.runIndex];
    return { run: run.name, label: run.labels[this.index], trial: this.trial, open: this.details.open };
  }

  /** The last slot of its trial on record at or before the slider; null if there is none. */
  get frame() {
    for (let column = this.run.map.slots.findLastIndex((slot) => slot <= slotNow()); column >= 0; column--) {
      const frame = frameAt(this.run, this.index, this.trial, column);
      if (frame) return frame;
    }
    return null;
  }

  offer() {
    const choose = (label, options, chosen, change) => {
      const select = element("select", { "aria-label": label }, ...options.map((text, number) => element("option", { value: number, textContent: text, selected: number === chosen })));
      select.onchange = () => { change(Number(select.value)); showMaps(); };
      return element("label", {}, label, select);
    };
    const made = [];
    if (data.runs.length > 1) made.push(choose("run", data.runs.map((run) => run.name), this.runIndex, (to) => { Object.assign(this, { runIndex: to, index: 0, trial: 0 }); this.offer(); }));
    made.push(choose("selector", this.run.selectors.map((one) => one.label), this.index, (to) => { this.index = to; }));
    made.push(choose("trial", Array.from({ length: this.run.map.trials }, (_, trial) => String(trial)), this.trial, (to) => { this.trial = to; }));
    if (panels.length > 1) made.push(element("button", { type: "button", textContent: "×", title: "remove this map", "aria-label": "remove this map", onclick: () => removePanel(this) }));
    this.choices.replaceChildren(...made);
  }

  close() {
    this.chart.close();
    this.figure.remove();
  }

  show() {
    this.chart.draw();
    this.words.textContent = this.sentence();
    this.fill();
  }

  name(client) {
    const row = this.run.map.clients.indexOf(client);
    return row < 0 ? String(client) : this.run.clientNames[row];
  }

  sentence() {
    const frame = this.frame;
    if (!frame) return slotNow() ? `Up to slot ${slotNow()} nothing of this trial is on record.` : "Nothing is on record.";
    if (!frame.members.size) return `Slot ${frame.slot} was ${frame.status}: nobody was elected.`;
    const { map, clients } = this.run;
    const whose = map.clients.length < clients ? " of the clients shown" : "";
    const values = map.clients.map((_, row) => frame.opinion(row)).filter((value) => value !== null);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const heard = values.length ? ` Mean opinion${whose} ${mean.toFixed(3)}.` : "";
    const whether = frame.status === "done" ? "" : ` The slot was ${frame.status}.`;
    return `Slot ${frame.slot}: elected ${[...frame.members.keys()].map((client) => this.name(client)).join(", ")}.${heard}${whether}`;
  }

  /** What is known of one client in this slot: [name, text] pairs. */
  facts(frame, row) {
    const { map, trials } = this.run;
    const client = map.clients[row];
    const facts = [["client", this.name(client)]];
    if (map.groups[row]) facts.push(["group", map.groups[row]]);
    if (map.sizes) facts.push(["training samples", map.sizes[row]]);
    if (map.upload) facts.push(["upload arrives with probability", map.upload[row]]);
    if (frame) {
      facts.push(["opinion", frame.opinion(row)]);
      if (frame.belief(row) !== null) facts.push(["belief", frame.belief(row)]);
      facts.push(["elected so far, share of slots", frame.share(row)]);
      facts.push(["elected now", frame.members.has(client) ? "yes" : "no"]);
      facts.push(["uploads arrived", frame.members.has(client) ? `${frame.members.get(client)} of ${frame.rounds}` : null]);
    }
    return facts;
  }

  rows() {
    const frame = this.frame;
    const heads = [];
    const rows = this.run.map.clients.map((_, row) => Object.fromEntries(this.facts(frame, row)));
    for (const row of rows) for (const name of Object.keys(row)) if (!heads.includes(name)) heads.push(name);
    return [heads, ...rows.map((row) => heads.map((name) => row[name] ?? null))];
  }

  fill() {
    if (!this.details.open) return;
    const [heads, ...rows] = this.rows();
    const cell = (tag, value) => element(tag, { textContent: typeof value === "number" ? String(+value.toFixed(4)) : value ?? "–" });
    const body = rows.map((row) => element("tr", {}, ...row.map((value, column) => cell(column ? "td" : "th", value))));
    this.table.replaceChildren(element("thead", {}, element("tr", {}, ...heads.map((head) => cell("th", head)))), element("tbody", {}, ...body));
  }

  option(ink) {
    const { run } = this;
    const { map } = run;
    const frame = this.frame;
    const [left, bottom, right, top] = map.square;
    const [least, most] = extentOf(run, mapView.kind);
    const within = (value) => (value === null ? null : Math.min(Math.max(value, least), most));
    const server = [(left + right) / 2, (bottom + top) / 2];
    const crowd = Math.min(1, Math.sqrt(LABELLED_CLIENTS / map.clients.length), Math.sqrt(this.chart.plot.clientWidth / 560));
    const largest = map.sizes ? Math.max(...map.sizes, 1) : 1;
    const size = (row) => (map.sizes ? 8 + 22 * Math.sqrt(map.sizes[row] / largest) : 20) * crowd;
    const row = new Map(map.clients.map((client, number) => [client, number]));
    const points = map.clients.map((client, number) => ({
      name: String(client),
      client: number,
      value: [...map.places[number], within(frame ? frame[mapView.kind](number) : null)],
      symbolSize: size(number),
    }));
    placeLabels(points, this.chart.plot.clientWidth, map.square, (point) => frame?.members.has(map.clients[point.client]));
    const lit = frame ? points.filter((point) => frame.members.has(map.clients[point.client])) : [];
    const uploads = lit.map((point) => {
      const arrived = frame.rounds ? frame.members.get(map.clients[point.client]) / frame.rounds : 1;
      return { coords: [point.value.slice(0, 2), server], lineStyle: { opacity: 0.25 + 0.65 * arrived, type: arrived ? "solid" : [4, 4] } };
    });
    const links = map.links.map(([one, other]) => ({ coords: [map.places[row.get(one)], map.places[row.get(other)]] }));
    const label = { formatter: ({ name }) => name, distance: 5, color: ink.text, fontSize: 11 };
    const axis = (name, from, to) => ({ type: "value", min: from, max: to, name, interval: (to - from) / 4, axisLabel: { color: ink.soft, show: map.placesKnown, formatter: (value) => String(+value.toPrecision(3)) } });
    const base = mapFrame(ink, map, axis, [left, right, bottom, top], this.sentence());
    const still = { animation: true, animationDuration: 0, animationDurationUpdate: mapView.timer ? 150 : 250 };
    return {
      ...base,
      ...still,
      tooltip: { ...base.tooltip, trigger: "item", formatter: ({ data: point }) => this.tip(point) },
      visualMap: {
        type: "continuous", dimension: 2, seriesIndex: 2, min: least, max: most, precision: 3, inRange: { color: CIVIDIS }, orient: "horizontal", left: "center", bottom: 2,
        itemWidth: 12, itemHeight: 130, text: [figureText(most, 2), `${KINDS[mapView.kind]} ${figureText(least, 2)}`], textStyle: { color: ink.soft }, hoverLink: false, show: true,
      },
      series: [
        { type: "lines", coordinateSystem: "cartesian2d", silent: true, z: 1, data: links, lineStyle: { color: ink.soft, width: 1, opacity: Math.max(0.08, 0.35 * crowd ** 2), curveness: 0 }, animation: false },
        { type: "lines", coordinateSystem: "cartesian2d", silent: true, z: 2, data: uploads, lineStyle: { color: ink.lit, width: 2, curveness: 0 }, animation: false },
        { type: "scatter", name: "clients", tipped: true, z: 4, data: points.filter((point) => point.value[2] !== null), label, itemStyle: { borderColor: ink.soft, borderWidth: 1, opacity: 1 } },
        { type: "scatter", name: "no value", z: 4, data: points.filter((point) => point.value[2] === null), label, itemStyle: { color: ink.page, borderColor: ink.soft, borderWidth: 1.5 } },
        {
          type: "scatter", name: "elected", silent: true, z: 5, animation: false,
          data: lit.map((point) => ({ ...point, label: { show: false }, symbolSize: point.symbolSize + 7 * crowd })),
          itemStyle: { color: "transparent", borderColor: ink.lit, borderWidth: 3, shadowColor: ink.lit, shadowBlur: 12 },
        },
        { type: "scatter", name: "server", silent: true, z: 3, symbol: "roundRect", symbolSize: 20, data: [server], itemStyle: { color: ink.text, opacity: 1 }, label: { show: true, position: "bottom", distance: 4, formatter: "server", color: ink.text, fontSize: 12, fontWeight: "bold", textBorderColor: ink.page, textBorderWidth: 3 } },
      ],
    };
  }

  tip(point) {
    if (point.client === undefined) return "";
    const text = (value) => (typeof value === "number" && !Number.isInteger(value) ? String(+value.toFixed(4)) : value ?? "–");
    const lines = this.facts(this.frame, point.client).filter(([name, value]) => value !== null || name === "opinion");
    return lines.map(([name, value]) => `${safe(name)} <b>${safe(text(value))}</b>`).join("<br>");
  }
}

/** Give each point a place for its name beside it that covers no circle and no other name, the elected first; or none. */
function placeLabels(points, width, [left, bottom, right, top], elected) {
  const room = ROOM_BESIDE_MAP;
  const scale = (width - room.left - room.right) / (right - left);
  const centre = ([x, y]) => [(x - left) * scale, (top - y) * scale];
  const taken = points.map(({ value, symbolSize }) => { const [x, y] = centre(value); const r = symbolSize / 2; return [x - r, y - r, x + r, y + r]; });
  const middle = scale * (right - left) / 2;
  taken.push([middle - 20, middle - 10, middle + 20, middle + 30]); // the server and its name
  const free = (box) => box[0] > 0 && box[2] < scale * (right - left) + room.right && taken.every((one) => box[2] <= one[0] || one[2] <= box[0] || box[3] <= one[1] || one[3] <= box[1]);
  const many = points.length > LABELLED_CLIENTS;
  for (const point of [...points].sort((a, b) => Number(Boolean(elected(b))) - Number(Boolean(elected(a))))) {
    const [[x, y], r, w, h] = [centre(point.value), point.symbolSize / 2 + 5, 7 * point.name.length, 11];
    const boxes = { right: [x + r, y - h / 2, x + r + w, y + h / 2], left: [x - r - w, y - h / 2, x - r, y + h / 2], top: [x - w / 2, y - r - h, x + w / 2, y - r], bottom: [x - w / 2, y + r, x + w / 2, y + r + h] };
    const position = many ? undefined : Object.keys(boxes).find((side) => free(boxes[side]));
    point.label = { show: position !== undefined, position };
    if (position) taken.push(boxes[position]);
  }
}

/** The axes of a map: as long both ways, in kilometres where places are on record. */
function mapFrame(ink, map, axis, [left, right, bottom, top], description) {
  const unit = map.placesKnown ? "km" : "places not on record: drawn on a circle";
  const base = frame(ink, { x: axis(unit, left, right), y: axis("", bottom, top), description });
  return { ...base, grid: ROOM_BESIDE_MAP };
}

function addPanel(runIndex, index, trial) {
  const panel = new Panel(runIndex, index, trial);
  panels.push(panel);
  arrangePanels();
  return panel;
}

function removePanel(panel) {
  panels.splice(panels.indexOf(panel), 1);
  panel.close();
  arrangePanels();
}

function arrangePanels() {
  at("maps").classList.toggle("one", panels.length === 1);
  at("add-map").hidden = panels.length >= MOST_PANELS;
  for (const panel of panels) panel.offer();
}

function showMaps() {
  const visited = stops();
  at("slot").value = mapView.stop;
  at("slot").setAttribute("aria-valuetext", `slot ${slotNow()}`);
  at("slot-name").textContent = visited.length ? `${slotNow()} of ${visited.at(-1)}` : "–";
  for (const panel of panels) panel.show();
}

function play(on) {
  clearInterval(mapView.timer);
  mapView.timer = null;
  at("play").textContent = on ? "Pause" : "Play";
  at("play").setAttribute("aria-pressed", String(on));
  if (!on) return;
  if (mapView.stop >= stops().length - 1) mapView.stop = -1;
  const next = () => {
    if (mapView.stop >= stops().length - 1) return play(false);
    mapView.stop += 1;
    showMaps();
  };
  mapView.timer = setInterval(next, Number(at("speed").value));
  next();
}

/** Slider, colours and panels for the data as it is now; a slider that stood at the end stays there. */
function offerMapChoices(before) {
  const visited = stops();
  const atEnd = mapView.stop >= before - 1;
  mapView.stop = atEnd && !mapView.timer ? visited.length - 1 : Math.min(mapView.stop, visited.length - 1);
  at("slot").max = Math.max(visited.length - 1, 0);
  const has = { opinion: (frames) => frames.opinions, belief: (frames) => frames.beliefs, share: () => true };
  const kinds = Object.keys(KINDS).filter((kind) => data.runs.some((run) => run.map.frames.some(has[kind])));
  if (!kinds.includes(mapView.kind)) mapView.kind = kinds[0] ?? "share";
  const choice = (kind) => {
    const button = element("input", { type: "radio", name: "kind", value: kind, checked: kind === mapView.kind });
    button.onchange = () => { mapView.kind = kind; showMaps(); };
    return element("label", {}, button, KINDS[kind]);
  };
  if (at("colour-by").dataset.kinds !== kinds.join()) {
    at("colour-by").dataset.kinds = kinds.join();
    at("colour-by").replaceChildren(element("legend", { textContent: "colour by" }), ...kinds.map(choice));
  }
  matchPanels();
}

function addFirstPanels() {
  data.runs.slice(0, MOST_PANELS).forEach((_, runIndex) => addPanel(runIndex, 0, 0));
  const last = data.runs[0].selectors.length - 1;
  if (data.runs.length === 1 && last > 0 && innerWidth >= ROOM_FOR_TWO) addPanel(0, last, 0);
}

function addMapControls() {
  at("play").onclick = () => play(!mapView.timer);
  at("speed").onchange = () => { if (mapView.timer) play(true); };
  at("slot").oninput = (event) => { play(false); mapView.stop = Number(event.target.value); showMaps(); };
  at("add-map").onclick = () => {
    const last = panels.at(-1);
    addPanel(last.runIndex, (last.index + 1) % last.run.selectors.length, last.trial);
    showMaps();
  };
}
