#!/bin/sh
# Builds src/fedelect/report/vendor/ from npm packages of the exact versions in package.json. Needs npm; users need none of it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out="$here/../../src/fedelect/report/vendor"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/entry.js" "$work"
cd "$work"
npm install --no-audit --no-fund --no-package-lock --silent
npx esbuild entry.js --bundle --minify --format=iife --global-name=echarts --target=es2020 --legal-comments=none \
  --banner:js='/* Apache ECharts 6.1.0 (Apache-2.0), zrender 6.1.0 (BSD-3-Clause), tslib 2.3.0 (0BSD): see the licences beside this file */' \
  --log-level=warning --outfile="$out/echarts.min.js"
cp node_modules/echarts/LICENSE "$out/LICENSE-echarts.txt"
cp node_modules/echarts/NOTICE "$out/NOTICE-echarts.txt"
cp node_modules/zrender/LICENSE "$out/LICENSE-zrender.txt"
cp node_modules/tslib/LICENSE.txt "$out/LICENSE-tslib.txt"
cd "$out" && sha256sum echarts.min.js > echarts.min.js.sha256
