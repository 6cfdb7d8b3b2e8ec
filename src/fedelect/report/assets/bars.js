// Bars, one for each client and selector: how often it was elected, and how many of its uploads were lost.

const MANY_BARS = 400;

function clientNames() {
  return data.runs.reduce((most, run) => (run.clientNames.length > most.length ? run.clientNames : most), []);
}

function barOption(ink, { valuesOf, title, even }) {
  if (!allSeries().some((one) => valuesOf(one).some((value) => value !== null))) return null;
  const names = clientNames();
  const drawn = shownSeries();
  const base = frame(ink, {
    x: { type: "category", data: names, name: "client", axisLabel: { color: ink.soft, hideOverlap: true, formatter: (name) => (name.length > 12 ? `${name.slice(0, 11)}…` : name) }, splitLine: { show: false } },
    y: { type: "value", axisLabel: { color: ink.soft, formatter: (value) => `${+(100 * value).toFixed(2)} %` } },
    description: `${title}, for ${names.length} clients and ${drawn.length} selectors; the data is under CSV.`,
  });
  const series = drawn.map((one) => ({ type: "bar", name: one.name, tipped: true, data: valuesOf(one), itemStyle: { color: ink.of(one.position) }, barGap: "0%", barCategoryGap: "18%", emphasis: { disabled: true } }));
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
  return [["client", ...drawn.map((one) => one.name)], ...clientNames().map((name, client) => [name, ...drawn.map((one) => valuesOf(one)[client])])];
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
