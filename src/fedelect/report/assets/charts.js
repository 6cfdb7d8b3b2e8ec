// One chart: drawn by ECharts, redrawn when data, size or theme change, saved as PNG, SVG or CSV, read by keyboard.

/** Charts by the name they are saved under. */
const charts = new Map();

const ROOM_BESIDE_MAP = { left: 44, right: 14, top: 12, bottom: 84 };

class Chart {
  /**
   * @param figure The element that holds it.
   * @param name What it is saved as.
   * @param build From colours to an ECharts option, or null when there is nothing to draw.
   * @param rows The data behind it, as rows for CSV, heads first.
   * @param square Whether its plot must be as high as wide: a map.
   */
  constructor(figure, { name, build, rows, square = false, many = false }) {
    Object.assign(this, { figure, name, build, rows, square });
    this.chart = null;
    this.plot = element("div", { className: "plot", tabIndex: 0 });
    figure.append(this.plot);
    this.fit();
    this.chart = echarts.init(this.plot, null, { renderer: many ? "canvas" : "svg" });
    this.cursor = -1;
    this.plot.addEventListener("keydown", (event) => this.step(event));
    this.plot.addEventListener("blur", () => this.chart.dispatchAction({ type: "hideTip" }));
    const save = (label, what) => element("button", { type: "button", textContent: label, title: `save as ${label}`, onclick: what });
    const buttons = [save("PNG", () => this.savePng()), save("SVG", () => this.saveSvg()), save("CSV", () => this.saveCsv())];
    figure.append(element("p", { className: "save" }, ...buttons));
    this.watcher = new ResizeObserver(() => {
      this.fit();
      this.chart.resize();
    });
    this.watcher.observe(this.plot);
    charts.set(name, this);
  }

  /** A map's height follows from its width, so that a kilometre is as long both ways. */
  fit() {
    if (!this.square) return;
    const room = ROOM_BESIDE_MAP;
    this.plot.style.height = `${this.plot.clientWidth - room.left - room.right + room.top + room.bottom}px`;
  }

  draw() {
    const option = this.build(inkNow());
    this.figure.hidden = option === null;
    if (option === null) return;
    this.chart.setOption({ ...option, animation: option.animation === true && !calm() }, { replaceMerge: ["series"] });
    this.plot.setAttribute("role", "img");
  }

  close() {
    this.watcher.disconnect();
    this.chart.dispose();
    charts.delete(this.name);
  }

  /** Left and right move the tooltip from point to point. */
  step(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined) return;
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
    return { ...this.build(ink), animation: false, backgroundColor: ink.page };
  }

  savePng() {
    const size = { width: this.plot.clientWidth, height: this.plot.clientHeight };
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
    const size = { width: this.plot.clientWidth, height: this.plot.clientHeight };
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
