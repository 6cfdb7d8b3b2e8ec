// Curves over slots: the mean over trials with its 95 % band, one line for each selector that is switched on.

const hasValues = (curve) => Boolean(curve?.mean.some((value) => value !== null));

const LOG_FLOOR = 0.01; // on a log scale what is below is not drawn

/** Between which values an opinion lies; one that noise was added to may lie anywhere. */
const opinionLimits = (run) => (run.noisy ? [-Infinity, Infinity] : [0, 1]);

const view = { log: false, bound: false, whose: null };

/** The stretches of a curve without gaps, as points [slot, low, high], kept within limits. */
function bandPieces(slots, { mean, half }, [least, most]) {
  const pieces = [[]];
  slots.forEach((slot, place) => {
    if (half === null || mean[place] === null || half[place] === null) pieces.push([]);
    else pieces.at(-1).push([slot, Math.max(mean[place] - half[place], Math.min(least, mean[place])), Math.min(mean[place] + half[place], Math.max(most, mean[place]))]);
  });
  return pieces.filter((piece) => piece.length);
}

function bandSeries(pieces, colour, opacity) {
  const faint = { blur: { style: { opacity: 0.02 } }, emphasis: { style: { opacity: 0.25 } } };
  const render = (params, api) => {
    if (params.dataIndexInside !== 0) return null;
    const shapes = pieces.map((piece) => {
      const low = piece.map(([x, under]) => api.coord([x, under]));
      const high = piece.map(([x, , over]) => api.coord([x, over]));
      if (piece.length === 1) {
        const shape = { x1: low[0][0], y1: low[0][1], x2: high[0][0], y2: high[0][1] };
        return { type: "line", shape, style: { stroke: colour, lineWidth: 3, opacity: 0.5 } };
      }
      return { type: "polygon", shape: { points: [...high, ...low.reverse()] }, style: { fill: colour, opacity }, ...faint };
    });
    return { type: "group", children: shapes };
  };
  return { type: "custom", silent: true, clip: true, z: 1, renderItem: render, encode: { x: 0, y: [1, 2] }, data: pieces.flat(), tooltip: { show: false } };
}

/** Where the points of a curve lie: its own places, or the slots at which all curves of its run are drawn. */
const placesOf = (one, curve) => curve.x ?? one.run.curveSlots;

/** Number of the point of a curve at a place, or of the last one before it; -1 if there is none. */
const pointAt = (one, curve, place) => (curve.x ? curve.x.findLastIndex((x) => x !== null && x <= place) : one.run.curveSlots.indexOf(place));

/** A place that is the only one is moved to the left, so that the points of all selectors are seen; lines stay where they are. */
const sideBySide = (places, { room, left, count }) => (places.length === 1 ? [places[0] - (0.6 * room * left) / count] : places);

/** One selector's line, and its band under it. */
function lineAndBand(ink, one, curve, { limits, log, count, order }) {
  const lowest = log ? LOG_FLOOR : -Infinity;
  const keep = (value) => (value === null || (log && value < LOG_FLOOR) ? null : value);
  const slots = sideBySide(placesOf(one, curve), curve.x ? { room: one.run.curveSlots.at(-1) / 12, left: count - 1 - order, count } : { room: 1, left: (count - 1) / 2 - order, count });
  const [least, most] = limits(one.run);
  const band = bandPieces(slots, { mean: curve.mean.map(keep), half: curve.half }, [Math.max(least, lowest), most]);
  const colour = ink.of(one);
  const every = Math.max(1, Math.round(slots.length / 9)); // marks tell a second run's line from the first's
  const line = {
    type: "line",
    name: one.name,
    of: one.label,
    tipped: true,
    z: 3,
    data: slots.map((slot, place) => [slot, keep(curve.mean[place])]),
    symbol: one.selector.again ? "emptyCircle" : "circle",
    showSymbol: one.selector.again || slots.length < (curve.x ? 6 : 3),
    showAllSymbol: true,
    symbolSize: one.selector.again ? (_, { dataIndex }) => (dataIndex % every === 0 ? 7 : 0) : 9,
    triggerLineEvent: true,
    lineStyle: { color: colour, width: 2.2, type: patternOf(one) },
    itemStyle: { color: colour },
    emphasis: { focus: "series", lineStyle: { width: 3.6 } },
    blur: { lineStyle: { opacity: 0.15 }, itemStyle: { opacity: 0.15 } },
  };
  return band.length ? [{ ...bandSeries(band, colour, count > 5 ? 0.08 : 0.16), of: one.label }, line] : [line];
}

const LABEL_PX = 11;
const LABEL_STEP = 14; // pixels from one name to the next

/** How wide the names of the lines may be, in pixels: as long as the longest, but a third of the chart at most. */
const roomForNames = (names, width) => Math.min(Math.max(...names.map((name) => name.length), 0) * 0.56 * LABEL_PX + 26, width / 3);

/** Heights for names that would stand at `wanted`, moved apart so that none covers another. */
function spread(wanted, top, bottom) {
  const step = Math.min(LABEL_STEP, (bottom - top) / Math.max(wanted.length - 1, 1));
  const order = wanted.map((_, place) => place).sort((a, b) => wanted[a] - wanted[b]);
  const found = [...wanted];
  let free = top;
  for (const place of order) free = (found[place] = Math.max(wanted[place], free)) + step;
  let last = bottom;
  for (const place of order.reverse()) last = (found[place] = Math.min(found[place], last)) - step;
  return found;
}

/** Where the lines of selectors end. */
const endsOf = (ink, drawn) => drawn.map(({ one, curve }) => {
  const last = curve.mean.findLastIndex((value) => value !== null);
  return { name: one.name, colour: ink.of(one), label: one.label, value: [placesOf(one, curve)[last], curve.mean[last]] };
});

/** The names of lines where they end: {name, colour, label, value} each. */
function endLabels(ends, room) {
  const most = Math.floor((room - 20) / (0.56 * LABEL_PX));
  const render = (params, api) => {
    const { x, y, width, height } = params.coordSys;
    const points = ends.map(({ value }) => api.coord(value));
    const heights = spread(points.map(([, at]) => at), y + 4, y + height - 2);
    const { name, colour } = ends[params.dataIndex];
    const [end, level] = points[params.dataIndex];
    const [from, at] = [x + width + 14, heights[params.dataIndex]];
    const text = name.length > most ? `${name.slice(0, most - 1)}…` : name;
    const quiet = { blur: { style: { opacity: 0.2 } } };
    return {
      type: "group",
      children: [
        { type: "polyline", shape: { points: [[end + 3, level], [x + width + 4, level], [from - 2, at]] }, style: { stroke: colour, fill: "none", lineWidth: 1, opacity: 0.6 }, ...quiet },
        { type: "text", style: { x: from, y: at, text, fill: colour, fontSize: LABEL_PX, fontWeight: 600, verticalAlign: "middle" }, ...quiet },
      ],
    };
  };
  return ends.map((_, place) => ({ type: "custom", of: ends[place].label, z: 6, clip: false, encode: { x: 0, y: 1 }, renderItem: (params, api) => render({ ...params, dataIndex: place }, api), data: [ends[place].value], tooltip: { show: false }, emphasis: { focus: "series" } }));
}

/** A straight line from the first to the last slot, which is named at its end. */
function levelLine(ink, slots, value, name) {
  const ends = slots.length > 1 ? [slots[0], slots.at(-1)] : [0.5, 1.5];
  const line = { type: "line", silent: true, z: 2, data: ends.map((slot) => [slot, value]), showSymbol: false, lineStyle: { color: ink.text, width: 1.2, type: [3, 3] }, tooltip: { show: false } };
  return { line, end: { name, colour: ink.text, value: [ends[1], value] } };
}

function curveOption(ink, size, world, { curveOf, title, limits = () => [-Infinity, Infinity], log = false, extra = () => [], digits = 4, unit = "slot" }) {
  if (!seriesOf(world).some((one) => hasValues(curveOf(one)))) return null;
  const drawn = shownSeries(world).map((one) => ({ one, curve: curveOf(one) })).filter(({ curve }) => hasValues(curve));
  const bySlot = unit === "slot";
  const last = bySlot ? Math.max(...world.runs.map((run) => data.runs[run].curveSlots.at(-1) ?? 1)) : null;
  const single = last === 1;
  const slotAxis = { type: "value", name: "slot", min: single ? 0.5 : 1, max: single ? 1.5 : last, minInterval: 1, ...(single ? { interval: 0.5, axisLabel: { color: ink.soft, formatter: (value) => (value === 1 ? "1" : "") } } : {}) };
  const ends = drawn.map(({ one, curve }) => `${one.name} ends at ${figureText(curve.mean.findLast((value) => value !== null), digits)}`);
  const base = frame(ink, {
    x: bySlot ? slotAxis : { type: "value", name: unit, min: 0 },
    y: log ? { type: "log", min: LOG_FLOOR, axisLabel: { color: ink.soft, formatter: (value) => (value < 1e4 ? String(value) : value.toExponential(0)) } } : { type: "value", scale: true },
    description: `${title}. ${ends.join("; ")}.`,
  });
  const tip = (points) => {
    const place = bySlot ? Math.round(points[0].axisValue) : points[0].axisValue;
    const found = drawn.map(({ one, curve }) => {
      const point = pointAt(one, curve, place);
      const half = curve.half === null || point < 0 ? null : curve.half[point];
      const value = point < 0 ? null : curve.mean[point];
      return { one, value, text: figureText(value, digits) + (half === null || value === null ? "" : ` ± ${figureText(half, digits)}`) };
    });
    found.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
    const lines = found.map(({ one, text }) => `<span style="color:${ink.of(one)}">●</span> ${safe(one.name)} <b>${text}</b>`);
    return [bySlot ? `slot ${place}` : `${figureText(place, 3)} ${unit}`, ...lines].join("<br>");
  };
  const lines = drawn.flatMap(({ one, curve }, order) => lineAndBand(ink, one, curve, { limits, log, count: drawn.length, order }));
  const more = extra(ink, world);
  const named = [...endsOf(ink, drawn), ...more.flatMap(({ end }) => (end ? [end] : []))];
  const room = roomForNames(named.map(({ name }) => name), size.width);
  const grid = { ...base.grid, right: named.length ? room : base.grid.right };
  return { ...base, grid, tooltip: { ...base.tooltip, trigger: "axis", formatter: tip }, series: [...lines, ...more.map(({ line }) => line), ...endLabels(named, room)] };
}

const zeroLine = (ink, world) => [levelLine(ink, data.runs[world.runs[0]].curveSlots, 0, "random")];

/** The optimum, where an atlas knows it. */
function optimumLine(ink, world) {
  const run = data.runs[world.runs[0]];
  return run.optimum === null ? [] : [levelLine(ink, run.curveSlots, run.optimum, `optimum ${run.optimum.toFixed(3)}`)];
}

/** The theorem's bounds, and t R_max, which no run exceeds on average as far as the cohorts seen tell. */
function boundLines(ink, world) {
  if (!view.bound) return [];
  const line = (name, slots, values, colour, number = 0) => ({
    type: "line",
    name,
    silent: true,
    z: 2,
    data: slots.map((slot, place) => [slot, values[place] >= LOG_FLOOR ? values[place] : null]),
    showSymbol: false,
    lineStyle: { color: colour, width: 1.6, type: [1, 3] },
    endLabel: { show: true, formatter: () => name, color: colour, align: "right", verticalAlign: number % 2 ? "top" : "bottom", offset: [-8, number % 2 ? 4 : -3], fontSize: 11 },
    tooltip: { show: false },
  });
  return world.runs.flatMap((runIndex, number) => {
    const run = data.runs[runIndex];
    const whose = world.runs.length > 1 ? `${run.name}: ` : "";
    const bounds = run.bounds.map((bound) =>
      line(`${whose}${bound.theorem}${bound.vacuous ? " (vacuous)" : ""}`, run.curveSlots, bound.values, ink.of(run.selectors[bound.selector]), number),
    );
    const ceiling = run.largestGap === null ? [] : [line(`${whose}t R_max`, run.curveSlots, run.curveSlots.map((slot) => slot * run.largestGap), ink.text, number)];
    return [...bounds, ...ceiling].map((one) => ({ line: one }));
  });
}

/** The rows of a chart of curves: one for each slot, three columns for each selector. */
function curveRows(world, curveOf, unit = "slot") {
  const drawn = shownSeries(world).map((one) => ({ one, curve: curveOf(one) })).filter(({ curve }) => curve);
  const slots = [...new Set(drawn.flatMap(({ one, curve }) => placesOf(one, curve)))].filter((place) => place !== null).sort((a, b) => a - b);
  const heads = drawn.flatMap(({ one }) => [`${one.name} mean`, `${one.name} low`, `${one.name} high`]);
  const rows = slots.map((slot) => [
    slot,
    ...drawn.flatMap(({ one, curve }) => {
      const place = placesOf(one, curve).indexOf(slot);
      const mean = place < 0 ? null : curve.mean[place];
      const half = mean === null || curve.half === null ? null : curve.half[place];
      const end = (sign) => (half === null ? null : Number((mean + sign * half).toPrecision(6)));
      return [mean, end(-1), end(1)];
    }),
  ]);
  return [[unit, ...heads], ...rows];
}

const named = (name) => (one) => one.selector.curves[name];
const SHARE = () => [0, 1];

/** Whether the selectors of a world sent different amounts; else a chart over bytes would be that over slots again. */
function bytesDiffer(world) {
  const sent = seriesOf(world).map((one) => one.selector.byBytes?.x.findLast((value) => value !== null)).filter((value) => value !== undefined);
  return sent.length > 1 && Math.max(...sent) > 1.01 * Math.min(...sent);
}

/** The charts of a world, the one that the ranking is about first; `folded` ones are part of the theory. */
function curvesOf(world) {
  const accuracy = world.by === "accuracy";
  const opinions = [
    { id: "running", caption: "Mean opinion of all slots so far", curveOf: named("running mean"), limits: opinionLimits, extra: optimumLine, folded: accuracy },
    { id: "opinion", caption: "Opinion in each slot", curveOf: named("opinion"), limits: opinionLimits, extra: optimumLine, folded: accuracy },
  ];
  const measured = [
    { id: "accuracy", caption: "Accuracy of the global model", curveOf: named("accuracy"), limits: SHARE },
    { id: "difference", caption: "Accuracy minus that of random in the same trials", curveOf: named("accuracy minus random"), extra: zeroLine },
    { id: "flawed", caption: "Share of flawed clients among the elected so far", curveOf: named("flawed share"), limits: SHARE },
    { id: "low", caption: "Accuracy at the 10th percentile of clients", curveOf: named("low accuracy"), limits: SHARE },
    ...(bytesDiffer(world) ? [{ id: "bytes", caption: "Accuracy against megabytes sent", curveOf: (one) => one.selector.byBytes, limits: SHARE, unit: "MB sent" }] : []),
  ];
  const theory = [
    { id: "regret", caption: "Regret", curveOf: named("regret"), log: () => view.log, extra: boundLines, digits: 2, folded: true },
    { id: "beliefs", caption: "Beliefs", curveOf: (one) => one.selector.beliefs[view.whose], limits: () => [0, Infinity], folded: true },
  ];
  const drawn = ({ curveOf }) => seriesOf(world).some((one) => hasValues(curveOf(one)));
  return [...(accuracy ? [...measured, ...opinions] : [...opinions, ...measured]), ...theory].filter(drawn);
}

/** A place for the charts of each world, under its name if there are several. */
function worldGrids(host) {
  const many = data.worlds.length > 1;
  const grids = data.worlds.map(() => element("div", { className: "grid" }));
  at(host).replaceChildren(...data.worlds.map((world, number) => element("div", { className: "world" }, ...(many ? [element("h3", { textContent: world.name })] : []), grids[number])));
  return grids;
}

const chartName = (caption, world) => (data.worlds.length > 1 ? `${caption}, ${world.name}` : caption);

/** A figure whose id names the chart, and the world if it is not the first. */
function addFigure(grid, id, number, caption) {
  const figure = element("figure", { className: "chart", id: number ? `figure-${id}-${number}` : `figure-${id}` }, element("figcaption", { textContent: caption }));
  grid.append(figure);
  return figure;
}

function addCurves() {
  const [grids, theory] = [worldGrids("curve-charts"), worldGrids("theory-charts")];
  data.worlds.forEach((_, number) => {
    for (const { id, caption, folded, ...options } of curvesOf(data.worlds[number])) {
      const figure = addFigure((folded ? theory : grids)[number], id, number, caption);
      const world = () => data.worlds[number];
      const chart = new Chart(figure, {
        name: chartName(caption, world()),
        build: (ink, size) => curveOption(ink, size, world(), { title: caption, ...options, log: options.log?.() }),
        rows: () => curveRows(world(), options.curveOf, options.unit),
      });
      chart.lines = true;
    }
  });
}

let chartsFor = "";

/** Charts for the worlds as they are now; made anew only if there are others than before. */
function matchCharts() {
  const wanted = JSON.stringify(data.worlds.map((world) => [world.name, curvesOf(world).map(({ id, folded }) => [id, folded])]));
  if (wanted === chartsFor) return;
  if (!chartsFor) addCurveControls();
  chartsFor = wanted;
  for (const chart of [...charts.values()]) if (!chart.name.startsWith("Map")) chart.close();
  addCurves();
  addBars();
}

function addCurveControls() {
  at("log").onchange = (event) => { view.log = event.target.checked; drawAll(); };
  at("bound").onchange = (event) => { view.bound = event.target.checked; drawAll(); };
  at("whose").onchange = (event) => { view.whose = event.target.value; drawAll(); };
  view.bound = data.runs.some((run) => run.bounds.some((bound) => !bound.vacuous));
  at("bound").checked = view.bound;
}

/** The choices that depend on the data: which selectors, whose beliefs. */
function offerCurveChoices() {
  const box = at("selectors");
  const focused = document.activeElement?.dataset?.name;
  const labels = new Map(allSeries().map((one) => [one.label, one]));
  box.replaceChildren(
    element("legend", { textContent: "Show" }),
    ...[...labels.values()].map((one) => {
      const tick = element("input", { type: "checkbox", checked: !switchedOff.has(one.label), "data-name": one.label });
      tick.onchange = () => { tick.checked ? switchedOff.delete(one.label) : switchedOff.add(one.label); drawAll(); };
      const key = element("span", { className: "key", "data-dash": one.look[1], style: `--ink: var(--series-${one.look[0]})` });
      return element("label", { "data-label": one.label }, tick, key, element("span", { className: "key-name", textContent: one.label }));
    }),
  );
  if (focused) [...box.querySelectorAll("input")].find((tick) => tick.dataset.name === focused)?.focus();
  const names = [...new Set(allSeries().flatMap((one) => Object.keys(one.selector.beliefs)))];
  if (!names.includes(view.whose)) view.whose = names[0] ?? null;
  at("whose-label").hidden = !names.length;
  at("whose").replaceChildren(...names.map((name) => element("option", { value: name, textContent: name, selected: name === view.whose })));
}
