// Bars, one for each client and selector: how often it was elected, and how many of its uploads were lost.

const MANY_BARS = 400;

/** The clients of all runs by number, with names where the runs do not contradict each other: {client, name} each. */
function barClients() {
  const names = new Map();
  for (const run of data.runs) run.map.clients.forEach((client, row) => names.set(client, (names.get(client) ?? new Set()).add(run.clientNames[row])));
  const agreed = [...names.values()].every((found) => found.size === 1);
  return [...names.keys()].sort((a, b) => a - b).map((client) => ({ client, name: agreed ? [...names.get(client)][0] : String(client) }));
}

/** One value for each of `clients`, whatever clients the run itself has; null where it has none. */
function alignedTo(clients, one, values) {
  const row = new Map(one.run.map.clients.map((client, number) => [client, number]));
  return clients.map(({ client }) => values[row.get(client)] ?? null);
}

function barOption(ink, { valuesOf, title, even }) {
  if (!allSeries().some((one) => valuesOf(one).some((value) => value !== null))) return null;
  const clients = barClients();
  const names = clients.map(({ name }) => name);
  const drawn = shownSeries();
  const base = frame(ink, {
    x: { type: "category", data: names, name: "client", axisLabel: { color: ink.soft, hideOverlap: true, formatter: (name) => (name.length > 12 ? `${name.slice(0, 11)}…` : name) }, splitLine: { show: false } },
    y: { type: "value", axisLabel: { color: ink.soft, formatter: (value) => `${+(100 * value).toFixed(2)} %` } },
    description: `${title}, for ${names.length} clients and ${drawn.length} selectors; the data is under CSV.`,
  });
  const series = drawn.map((one) => ({ type: "bar", name: one.name, tipped: true, data: alignedTo(clients, one, valuesOf(one)), itemStyle: { color: ink.of(one.position) }, barGap: "0%", barCategoryGap: "18%", emphasis: { disabled: true } }));
  if (even && series.length && data.runs.length === 1) {
    const share = data.runs[0].budget / data.runs[0].clients;
    series[0].markLine = { silent: true, symbol: "none", lineStyle: { color: ink.text, type: [3, 3] }, label: { position: "insideEndTop", color: ink.text, formatter: () => `even share ${(100 * share).toFixed(1)} %` }, data: [{ yAxis: share }] };
  }
  const tip = (points) => [
    `client ${safe(points[0].axisValue)}`,
    ...points.map((point) => `<span style="color:${point.color}">●</span> ${safe(point.seriesName)} <b>${point.value === null || point.value === undefined ? "–" : (100 * point.value).toFixed(1) + " %"}</b>`),
  ].join("<br>");
  const shown = Math.max(1, Math.floor(MANY_BARS / Math.max(drawn.length, 1)));
  const zoom = names.length > shown ? [{ type: "slider", startValue: 0, endValue: shown - 1, bottom: 4, height: 18 }] : [];
  return { ...base, ...(zoom.length ? { dataZoom: zoom, grid: { ...base.grid, bottom: 76 } } : {}), tooltip: { ...base.tooltip, trigger: "axis", axisPointer: { type: "shadow" }, formatter: tip }, series };
}

function barRows(valuesOf) {
  const drawn = shownSeries();
  const clients = barClients();
  const columns = drawn.map((one) => alignedTo(clients, one, valuesOf(one)));
  return [["client", ...drawn.map((one) => one.name)], ...clients.map(({ name }, row) => [name, ...columns.map((column) => column[row])])];
}

function addBars() {
  const shares = (one) => one.selector.shares;
  const failures = (one) => one.selector.failures;
  const anyLost = () => allSeries().some((one) => failures(one).some((value) => value > 0));
  new Chart(at("figure-shares"), { name: "Elections", build: (ink) => barOption(ink, { valuesOf: shares, title: "Share of slots for which each client was elected", even: true }), rows: () => barRows(shares) });
  new Chart(at("figure-failures"), {
    name: "Lost uploads",
    build: (ink) => {
      at("no-failures").hidden = anyLost() || !allSeries().some((one) => failures(one).some((value) => value !== null));
      return anyLost() ? barOption(ink, { valuesOf: failures, title: "Share of uploads that did not arrive" }) : null;
    },
    rows: () => barRows(failures),
  });
}
