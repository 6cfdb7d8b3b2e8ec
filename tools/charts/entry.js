// The parts of Apache ECharts that the report uses, and no more. `make charts` bundles them into one file.
import { use } from "echarts/core";
import { BarChart, CustomChart, LineChart, LinesChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  MarkLineComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

use([BarChart, CustomChart, LineChart, LinesChart, ScatterChart]);
use([AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent, VisualMapComponent]);
use([CanvasRenderer, SVGRenderer]);

export { init, version } from "echarts/core";
