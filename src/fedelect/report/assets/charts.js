// One chart: drawn by ECharts, redrawn when data, size or theme change, saved as PNG, SVG or CSV, read by keyboard.

/** Charts by the name they are saved under. */
const charts = new Map();

let printing = false;

let highlighted = null;

/** Emphasise one selector in all charts of curves. */
function highlight(label = null) {
  if (label === highlighted) return;
  highlighted = label;
  for (const chart of charts.values()) if (chart.lines) chart.highlight(label);
}

for (const [kind, label] of [["pointerover", (at) => at?.dataset.label ?? null], ["pointerout", () => null]]) {
  document.addEventListener(kind, (event) => { const at = event.target.closest?.("[data-label]"); if (at) highlight(label(at)); });
}

const ROOM_BESIDE_MAP = { left: 40, right: 14, top: 12, bottom: 84 };

class Chart {
  /**
   * @param figure The element that holds it.
   * @param name What it is saved as.
   * @param build From colours and the plot's size to an ECharts option, or null when there is nothing to draw.
   * @param rows The data behind it, as rows for CSV, heads first.
   * @param height From the plot's width to its height in pixels; left to the style sheet if not given.
   */
  constructor(figure, { name, build, rows, height = null, many = false }) {
    Object.assign(this, { figure, name, build, rows, height, many });
    this.chart = null;
    this.plot = element("div", { className: "plot", tabIndex: 0 });
    figure.append(this.plot);
    this.cursor = -1;
    this.plot.addEventListener("keydown", (event) => this.step(event));
    this.plot.addEventListener("blur", () => this.chart?.dispatchAction({ type: "hideTip" }));
    const save = (label, what) => element("button", { type: "button", textContent: label, title: `save as ${label}`, onclick: what });
    const buttons = [save("PNG", () => this.savePng()), save("SVG", () => this.saveSvg()), save("CSV", () => this.saveCsv())];
    figure.append(element("p", { className: "save" }, ...buttons));
    this.width = 0;
    this.watcher = new ResizeObserver(() => { if (this.plot.clientWidth !== this.width) this.draw(); });
    this.watcher.observe(this.plot);
    charts.set(name, this);
  }

  get size() {
    return { width: this.plot.clientWidth, height: this.plot.clientHeight };
  }

  /** Draw, if there is something to draw and room for it: a part that is folded is drawn when it is opened. */
  draw() {
    this.figure.hidden = false;
    this.width = this.plot.clientWidth;
    if (!this.width) return;
    if (this.height) this.plot.style.height = `${this.height(this.width)}px`;
    const option = this.build(inkNow(), this.size);
    this.figure.hidden = option === null;
    if (option === null) return;
    if (this.chart) this.chart.resize();
    else this.begin();
    const moving = option.animation === true && !calm() && !printing;
    this.chart.setOption({ ...option, animation: moving }, { replaceMerge: ["series", "grid", "xAxis", "yAxis"] });
    if (!moving) this.chart.getZr().flush();
    this.plot.querySelector("svg")?.setAttribute("viewBox", `0 0 ${this.size.width} ${this.size.height}`); // so that paper of any width holds all of it
    this.plot.setAttribute("role", "img");
  }

  begin() {
    this.chart = echarts.init(this.plot, null, { renderer: this.many ? "canvas" : "svg" });
    this.chart.on("mouseover", ({ seriesIndex }) => highlight(this.labels()[seriesIndex]));
    this.chart.on("mouseout", () => highlight(null));
  }

  /** The label of the selector that each series is of. */
  labels() {
    return this.chart.getOption().series.map((one) => one.of);
  }

  /** Emphasise the lines of one selector; null ends it. */
  highlight(label) {
    if (!this.chart) return;
    const places = this.labels().flatMap((of, place) => (of !== undefined && of === label ? [place] : []));
    this.chart.dispatchAction({ type: "downplay" });
    if (places.length) this.chart.dispatchAction({ type: "highlight", seriesIndex: places });
  }

  close() {
    this.watcher.disconnect();
    this.chart?.dispose();
    this.figure.remove();
    charts.delete(this.name);
  }

  /** Left and right move the tooltip from point to point. */
  step(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined || !this.chart) return;
    event.preventDefault();
    const series = this.chart.getOption().series;
    const index = series.findIndex((one) => one.tipped && one.data.length);
    if (index < 0) return;
    this.cursor = Math.min(Math.max(this.cursor + move, 0), series[index].data.length - 1);
    this.chart.dispatchAction({ type: "showTip", seriesIndex: index, dataIndex: this.cursor });
  }

  /** The option for a picture: no motion, the page's colour behind it, and its title above. */
  still() {
    const ink = inkNow();
    return { ...this.build(ink, this.size), animation: false, backgroundColor: ink.page };
  }

  savePng() {
    const { size } = this;
    const host = element("div", { style: `position:fixed;left:-9999px;width:${size.width}px;height:${size.height}px` });
    document.body.append(host);
    const chart = echarts.init(host, null, { renderer: "canvas", devicePixelRatio: 3, ...size });
    chart.setOption(this.still());
    const text = atob(chart.getDataURL({ type: "png", pixelRatio: 3 }).split(",")[1]);
    chart.dispose();
    host.remove();
    download(fileName(this.name, "png"), Uint8Array.from(text, (sign) => sign.charCodeAt(0)), "image/png");
  }

  saveSvg() {
    const { size } = this;
    const chart = echarts.init(null, null, { renderer: "svg", ssr: true, ...size });
    chart.setOption(this.still());
    download(fileName(this.name, "svg"), chart.renderToSVGString(), "image/svg+xml");
    chart.dispose();
  }

  saveCsv() {
    download(fileName(this.name, "csv"), csvText(this.rows()), "text/csv");
  }
}

/** What all charts with axes share. */
function frame(ink, { x, y, description }) {
  const axis = (given) => ({
    axisLine: { lineStyle: { color: ink.soft } },
    axisLabel: { color: ink.soft, hideOverlap: true },
    axisTick: { lineStyle: { color: ink.line } },
    splitLine: { lineStyle: { color: ink.line } },
    nameTextStyle: { color: ink.soft },
    ...given,
  });
  return {
    textStyle: { fontFamily: "system-ui, sans-serif" },
    grid: { left: 56, right: 18, top: 28, bottom: 44 },
    xAxis: axis({ nameLocation: "middle", nameGap: 26, ...x }),
    yAxis: axis(y),
    aria: { enabled: true, label: { description } },
    tooltip: { confine: true, backgroundColor: ink.panel, borderColor: ink.line, textStyle: { color: ink.text, fontSize: 13 } },
  };
}

function drawAll() {
  for (const chart of charts.values()) chart.draw();
}
