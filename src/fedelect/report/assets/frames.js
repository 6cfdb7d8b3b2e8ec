// The map's frames: whole numbers packed as text, one frame for each selector, trial and slot that is kept.

function unpack({ width, text }) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return width === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer);
}

const MISSING = { 2: 0xffff, 4: 0xffffffff };

/** Unpacked once for each run and selector, when it is first looked at. */
const unpacked = new WeakMap();

function framesOf(run, index) {
  const packed = run.map.frames[index];
  if (!unpacked.has(packed)) {
    const arrays = {};
    for (const [name, value] of Object.entries(packed)) arrays[name] = value && { numbers: unpack(value), missing: MISSING[value.width] };
    unpacked.set(packed, arrays);
  }
  return unpacked.get(packed);
}

/** What is known of one slot; null if it is not on record. `column` counts the slots that the map visits. */
function frameAt(run, index, trial, column) {
  const { map } = run;
  const frames = framesOf(run, index);
  const place = trial * map.slots.length + column;
  const status = column < 0 ? 0 : frames.status.numbers[place];
  if (!status) return null;
  const clients = map.clients.length;
  const value = (array, client, scale) => {
    if (!array) return null;
    const number = array.numbers[place * clients + client];
    return number === array.missing ? null : number / scale;
  };
  const budget = frames.members.numbers.length / (map.trials * map.slots.length);
  const members = new Map();
  for (let seat = place * budget; seat < (place + 1) * budget; seat++) {
    const client = frames.members.numbers[seat];
    if (client !== frames.members.missing) members.set(client, frames.arrivals.numbers[seat]);
  }
  return {
    slot: map.slots[column],
    status: map.statuses[status],
    rounds: frames.rounds.numbers[place],
    members,
    opinion: (client) => value(frames.opinions, client, 10 ** map.opinionDecimals),
    belief: (client) => value(frames.beliefs, client, 10 ** map.beliefDecimals),
    share: (client) => value(frames.elections, client, map.slots[column]),
  };
}

/** Between which values of a kind the colours run: all but the outermost hundredth at either end, over all frames. */
const extents = new WeakMap();

function extentOf(run, kind) {
  if (kind === "share") return [0, 1];
  if (!extents.has(run)) extents.set(run, {});
  const known = extents.get(run);
  if (!known[kind]) {
    const scale = 10 ** (kind === "opinion" ? run.map.opinionDecimals : run.map.beliefDecimals);
    const counts = new Map();
    let total = 0;
    run.selectors.forEach((_, index) => {
      const array = framesOf(run, index)[kind === "opinion" ? "opinions" : "beliefs"];
      if (!array) return;
      for (const number of array.numbers) {
        if (number === array.missing) continue;
        counts.set(number, (counts.get(number) ?? 0) + 1);
        total += 1;
      }
    });
    const sorted = [...counts.keys()].sort((a, b) => a - b);
    const quantile = (share) => {
      let passed = 0;
      return sorted.find((number) => (passed += counts.get(number)) > share * total) ?? sorted.at(-1);
    };
    const [least, most] = total ? [quantile(0.01) / scale, quantile(0.99) / scale] : [0, 1];
    known[kind] = [least, Math.max(most, least + 1e-4)];
  }
  return known[kind];
}
