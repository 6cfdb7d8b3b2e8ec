// Bars, one for each client and a row of them for each selector: how often it was elected, how many uploads were lost.

const MANY_BARS = 160;
const ROW = { top: 24, height: 44, gap: 26, bottom: 52 };

/** The clients of a world's runs by number, with names where the runs do not contradict each other: {client, name} each. */
function barClients(world) {
  const names = new Map();
  for (const run of world.runs.map((number) => data.runs[number])) run.map.clients.forEach((client, row) => names.set(client, (names.get(client) ?? new Set()).add(run.clientNames[row])));
  const agreed = [...names.values()].every((found) => found.size === 1);
  const flawed = new Set(world.runs.flatMap((number) => data.runs[number].flawed));
  return [...names.keys()].sort((a, b) => a - b).map((client) => ({ client, name: agreed ? [...names.get(client)][0] : String(client), flawed: flawed.has(client) }));
}

/** One value for each of `clients`, whatever clients the run itself has; null where it has none. */
function alignedTo(clients, one, values) {
  const row = new Map(one.run.map.clients.map((client, number) => [client, number]));
  return clients.map(({ client }) => values[row.get(client)] ?? null);
}

const percent = (value, digits = 1) => `${+(100 * value).toFixed(digits)} %`;

/** A row of bars for each selector, under its name, all on one scale. */
function barOption(ink, world, { valuesOf, title, even }) {
  if (!seriesOf(world).some((one) => valuesOf(one).some((value) => value !== null))) return null;
  const clients = barClients(world);
  const drawn = shownSeries(world);
  const values = drawn.map((one) => alignedTo(clients, one, valuesOf(one)));
  const most = Math.max(...values.flat(), 1e-6);
  const names = clients.map(({ name, flawed }) => (flawed ? `${name}*` : name));
  const short = (name) => (name.length > 12 ? `${name.slice(0, 11)}…` : name);
  const base = frame(ink, { x: {}, y: {}, description: `${title}, for ${names.length} clients and ${drawn.length} selectors; the data is under CSV.` });
  const tint = (name) => (name?.endsWith("*") ? ink.lit : ink.soft);
  const axes = (kind, made) => drawn.map((one, row) => ({ ...base[kind], gridIndex: row, ...made(one, row === drawn.length - 1) }));
  const x = axes("xAxis", (_, last) => ({ type: "category", data: names, name: last ? "client" : "", axisTick: { show: false }, axisLabel: { show: last, color: tint, hideOverlap: true, formatter: short }, splitLine: { show: false } }));
  const y = axes("yAxis", (one) => ({ type: "value", min: 0, max: most, interval: most, name: one.name, nameGap: 5, nameTextStyle: { color: ink.of(one), align: "left", fontWeight: 600 }, axisLabel: { color: ink.soft, formatter: (value) => percent(value, 0) } }));
  const line = () => {
    const { budget, clients: all } = data.runs[world.runs[0]];
    return even ? { markLine: { silent: true, symbol: "none", lineStyle: { color: ink.text, type: [3, 3], opacity: 0.6 }, label: { show: false }, data: [{ yAxis: budget / all }] } } : {};
  };
  const series = drawn.map((one, row) => ({ type: "bar", name: one.name, tipped: true, xAxisIndex: row, yAxisIndex: row, data: values[row].map((value, place) => ({ value, itemStyle: { opacity: clients[place].flawed ? 0.4 : 1 } })), itemStyle: { color: ink.of(one) }, barCategoryGap: "22%", emphasis: { disabled: true }, ...line() }));
  const tip = (points) => {
    const place = points[0].dataIndex;
    const lines = drawn.map((one, row) => `<span style="color:${ink.of(one)}">●</span> ${safe(one.name)} <b>${values[row][place] === null ? "–" : percent(values[row][place])}</b>`);
    return [`client ${safe(clients[place].name)}${clients[place].flawed ? ", flawed" : ""}`, ...lines].join("<br>");
  };
  const zoom = names.length > MANY_BARS ? [{ type: "slider", xAxisIndex: drawn.map((_, row) => row), startValue: 0, endValue: MANY_BARS - 1, bottom: 2, height: 16 }] : [];
  const grid = drawn.map((_, row) => ({ left: 48, right: 14, top: ROW.top + row * (ROW.height + ROW.gap), height: ROW.height }));
  const pointer = { type: "shadow", link: [{ xAxisIndex: "all" }] };
  return { ...base, grid, xAxis: x, yAxis: y, dataZoom: zoom, axisPointer: pointer, tooltip: { ...base.tooltip, trigger: "axis", axisPointer: { type: "shadow" }, formatter: tip }, series };
}

function barRows(world, valuesOf) {
  const drawn = shownSeries(world);
  const clients = barClients(world);
  const columns = drawn.map((one) => alignedTo(clients, one, valuesOf(one)));
  return [["client", ...drawn.map((one) => one.name)], ...clients.map(({ name }, row) => [name, ...columns.map((column) => column[row])])];
}

function addBars() {
  const grids = worldGrids("bar-charts");
  const lost = (one) => one.selector.failures;
  const anyLost = (world) => seriesOf(world).some((one) => lost(one).some((value) => value > 0));
  const kinds = [
    { id: "shares", caption: "Share of slots for which each client was elected", valuesOf: (one) => one.selector.shares, even: true, wanted: () => true },
    { id: "failures", caption: "Share of each client's uploads that did not arrive", valuesOf: lost, even: false, wanted: anyLost },
  ];
  data.worlds.forEach((_, number) => {
    const world = () => data.worlds[number];
    const first = data.runs[world().runs[0]];
    const flaws = world().runs.some((run) => data.runs[run].flawed.length) ? "; flawed clients have paler bars and a *" : "";
    for (const { id, caption, valuesOf, even, wanted } of kinds) {
      const figure = addFigure(grids[number], id, number, `${caption}${even ? `; dashed: even share, ${percent(first.budget / first.clients)}` : ""}${flaws}`);
      new Chart(figure, {
        name: chartName(caption, world()),
        build: (ink) => (wanted(world()) ? barOption(ink, world(), { valuesOf, title: caption, even }) : null),
        rows: () => barRows(world(), valuesOf),
        height: () => ROW.top + shownSeries(world()).length * (ROW.height + ROW.gap) - ROW.gap + ROW.bottom,
      });
    }
  });
}
