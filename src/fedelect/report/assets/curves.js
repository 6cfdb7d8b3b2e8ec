// Curves over slots: the mean over trials with its 95 % band, one line for each selector that is switched on.

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

function bandSeries(pieces, colour) {
  const render = (params, api) => {
    if (params.dataIndexInside !== 0) return null;
    const shapes = pieces.map((piece) => {
      const low = piece.map(([x, under]) => api.coord([x, under]));
      const high = piece.map(([x, , over]) => api.coord([x, over]));
      if (piece.length === 1) {
        const shape = { x1: low[0][0], y1: low[0][1], x2: high[0][0], y2: high[0][1] };
        return { type: "line", shape, style: { stroke: colour, lineWidth: 3, opacity: 0.5 } };
      }
      return { type: "polygon", shape: { points: [...high, ...low.reverse()] }, style: { fill: colour, opacity: 0.16 } };
    });
    return { type: "group", children: shapes };
  };
  return { type: "custom", silent: true, clip: true, z: 1, renderItem: render, encode: { x: 0, y: [1, 2] }, data: pieces.flat(), tooltip: { show: false } };
}

/** Where the points of a curve lie: its own places, or the slots at which all curves of its run are drawn. */
const placesOf = (one, curve) => curve.x ?? one.run.curveSlots;

/** Number of the point of a curve at a place, or of the last one before it; -1 if there is none. */
const pointAt = (one, curve, place) => (curve.x ? curve.x.findLastIndex((x) => x !== null && x <= place) : one.run.curveSlots.indexOf(place));

/** One selector's line, and its band under it. */
function lineAndBand(ink, one, curve, { limits, log, count, order }) {
  const lowest = log ? LOG_FLOOR : -Infinity;
  const keep = (value) => (value === null || (log && value < LOG_FLOOR) ? null : value);
  const alone = one.run.curveSlots.length === 1 ? (order - (count - 1) / 2) * (0.6 / count) : 0; // side by side
  const slots = placesOf(one, curve).map((slot) => slot + alone);
  const [least, most] = limits(one.run);
  const band = bandPieces(slots, { mean: curve.mean.map(keep), half: curve.half }, [Math.max(least, lowest), most]);
  const colour = ink.of(one.position);
  const line = {
    type: "line",
    name: one.name,
    tipped: true,
    z: 3,
    data: slots.map((slot, place) => [slot, keep(curve.mean[place])]),
    showSymbol: slots.length < (curve.x ? 6 : 3),
    symbolSize: 9,
    lineStyle: { color: colour, width: 2.2, type: patternOf(one.position) },
    itemStyle: { color: colour },
    emphasis: { disabled: true },
  };
  return band.length ? [bandSeries(band, colour), line] : [line];
}

/** A straight line from the first to the last slot with a word at its end. */
function levelLine(ink, slots, value, label, position) {
  const ends = slots.length > 1 ? [slots[0], slots.at(-1)] : [0.5, 1.5];
  return {
    type: "line",
    silent: true,
    z: 2,
    data: ends.map((slot) => [slot, value]),
    showSymbol: false,
    lineStyle: { color: ink.text, width: 1.2, type: [3, 3] },
    tooltip: { show: false },
    markLine: {
      silent: true,
      symbol: "none",
      lineStyle: { width: 0 },
      label: { position, color: ink.text, formatter: () => label },
      data: [{ yAxis: value }],
    },
  };
}

function curveOption(ink, { curveOf, title, limits = () => [-Infinity, Infinity], log = false, extra = () => [], digits = 4, unit = "slot" }) {
  const drawn = shownSeries().map((one) => ({ one, curve: curveOf(one) })).filter(({ curve }) => curve && curve.mean.some((value) => value !== null));
  if (!allSeries().some((one) => curveOf(one)?.mean.some((value) => value !== null))) return null;
  const bySlot = unit === "slot";
  const last = bySlot ? Math.max(...data.runs.map((run) => run.curveSlots.at(-1) ?? 1)) : null;
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
    const lines = drawn.map(({ one, curve }) => {
      const point = pointAt(one, curve, place);
      const half = curve.half === null || point < 0 ? null : curve.half[point];
      const value = point < 0 ? "–" : figureText(curve.mean[point], digits) + (half === null ? "" : ` ± ${figureText(half, digits)}`);
      return `<span style="color:${ink.of(one.position)}">●</span> ${safe(one.name)} <b>${value}</b>`;
    });
    return [bySlot ? `slot ${place}` : `${figureText(place, 3)} ${unit}`, ...lines].join("<br>");
  };
  const lines = drawn.flatMap(({ one, curve }, order) => lineAndBand(ink, one, curve, { limits, log, count: drawn.length, order }));
  return { ...base, tooltip: { ...base.tooltip, trigger: "axis", formatter: tip }, series: [...lines, ...extra(ink)] };
}

const zeroLine = (ink) => [levelLine(ink, data.runs[0].curveSlots, 0, "random", "insideStartTop")];

function oracleLines(ink) {
  const places = ["insideStartTop", "insideEndTop", "insideStartBottom", "insideEndBottom"];
  return data.runs.filter((run) => run.oracle !== null).map((run, number) => {
    const what = run.best === null ? "best cohort seen" : "best fixed cohort";
    const whose = data.runs.length > 1 ? `${run.name}: ` : "";
    return levelLine(ink, run.curveSlots, run.oracle, `${whose}${what} ${run.oracle.toFixed(3)}`, places[number % places.length]);
  });
}

/** The theorem's bounds, and t R_max, which no run exceeds on average as far as the cohorts seen tell. */
function boundLines(ink) {
  if (!view.bound) return [];
  const series = allSeries();
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
  return data.runs.flatMap((run, runIndex) => {
    const whose = data.runs.length > 1 ? `${run.name}: ` : "";
    const position = (index) => series.find((one) => one.runIndex === runIndex && one.index === index).position;
    const bounds = run.bounds.map((bound) =>
      line(`${whose}${bound.theorem}${bound.vacuous ? " (vacuous)" : ""}`, run.curveSlots, bound.values, ink.of(position(bound.selector)), runIndex),
    );
    const ceiling = run.largestGap === null ? [] : [line(`${whose}t R_max`, run.curveSlots, run.curveSlots.map((slot) => slot * run.largestGap), ink.text, runIndex)];
    return [...bounds, ...ceiling];
  });
}

/** The rows of a chart of curves: one for each slot, three columns for each selector. */
function curveRows(curveOf, unit = "slot") {
  const drawn = shownSeries().map((one) => ({ one, curve: curveOf(one) })).filter(({ curve }) => curve);
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

function addCurves() {
  const add = (id, curveOf, options) => new Chart(at(id), { name: options.title, build: (ink) => curveOption(ink, { curveOf, ...options, log: options.log?.(), digits: options.digits }), rows: () => curveRows(curveOf, options.unit) });
  const named = (name) => (one) => one.selector.curves[name];
  add("figure-opinion", named("opinion"), { title: "Opinion in each slot", limits: opinionLimits, extra: oracleLines });
  add("figure-running", named("running mean"), { title: "Mean of all slots so far", limits: opinionLimits, extra: oracleLines });
  add("figure-regret", named("regret"), { title: "Regret", log: () => view.log, extra: boundLines, digits: 2 });
  add("figure-accuracy", named("accuracy"), { title: "Clean accuracy", limits: () => [0, 1] });
  add("figure-difference", named("accuracy minus random"), { title: "Clean accuracy minus random", extra: zeroLine });
  add("figure-bytes", (one) => one.selector.byBytes, { title: "Clean accuracy against megabytes", limits: () => [0, 1], unit: "MB sent" });
  add("figure-flawed", named("flawed share"), { title: "Flawed among the elected", limits: () => [0, 1] });
  add("figure-low", named("low accuracy"), { title: "Low accuracy", limits: () => [0, 1] });
  add("figure-beliefs", (one) => one.selector.beliefs[view.whose], { title: "Beliefs", limits: () => [0, Infinity] });
  at("log").onchange = (event) => { view.log = event.target.checked; charts.get("Regret").draw(); };
  at("bound").onchange = (event) => { view.bound = event.target.checked; charts.get("Regret").draw(); };
  at("whose").onchange = (event) => { view.whose = event.target.value; charts.get("Beliefs").draw(); };
  view.bound = data.runs.some((run) => run.bounds.some((bound) => !bound.vacuous));
  at("bound").checked = view.bound;
}

/** The choices that depend on the data: which selectors, whose beliefs. */
function offerCurveChoices() {
  const box = at("selectors");
  const focused = document.activeElement?.dataset?.name;
  box.replaceChildren(
    element("legend", { textContent: "selectors" }),
    ...allSeries().map((one) => {
      const tick = element("input", { type: "checkbox", checked: !switchedOff.has(one.lasting), "data-name": one.name });
      tick.onchange = () => { tick.checked ? switchedOff.delete(one.lasting) : switchedOff.add(one.lasting); drawAll(); };
      const key = element("span", { className: "key", "data-series": one.position, style: `--ink: var(--series-${one.position % COLOURS})` });
      return element("label", {}, tick, key, element("span", { className: "key-name", textContent: one.name }));
    }),
  );
  if (focused) [...box.querySelectorAll("input")].find((tick) => tick.dataset.name === focused)?.focus();
  const names = [...new Set(allSeries().flatMap((one) => Object.keys(one.selector.beliefs)))];
  if (!names.includes(view.whose)) view.whose = names[0] ?? null;
  at("whose").replaceChildren(...names.map((name) => element("option", { value: name, textContent: name, selected: name === view.whose })));
}
