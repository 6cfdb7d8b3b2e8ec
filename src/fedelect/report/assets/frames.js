// The map's frames: whole numbers packed as text, one frame for each selector, trial and slot that is kept.

function unpack({ width, text }) {
  const signs = atob(text);
  const bytes = new Uint8Array(signs.length);
  for (let place = 0; place < signs.length; place++) bytes[place] = signs.charCodeAt(place);
  return width === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer);
}

const MISSING = { 2: 0xffff, 4: 0xffffffff };

/** Each array is unpacked once, when it is first looked at. */
const unpacked = new WeakMap();

function arrayOf(packed) {
  if (!packed) return null;
  if (!unpacked.has(packed)) unpacked.set(packed, { numbers: unpack(packed), missing: MISSING[packed.width] });
  return unpacked.get(packed);
}

/** What is known of one slot; null if it is not on record. `column` counts the slots that the map visits. */
function frameAt(run, index, trial, column) {
  const { map } = run;
  const packed = map.frames[index];
  const frames = Object.fromEntries(["status", "rounds", "members", "arrivals"].map((name) => [name, arrayOf(packed[name])]));
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
    opinion: (client) => value(arrayOf(packed.opinions), client, 10 ** map.opinionDecimals),
    belief: (client) => value(arrayOf(packed.beliefs), client, 10 ** map.beliefDecimals),
    share: (client) => value(arrayOf(packed.elections), client, map.slots[column]),
  };
}

/** Between which values of a kind the colours of a run's map go. */
function extentOf(run, kind) {
  const [least, most] = kind === "share" ? [0, 1] : run.map.extents[kind];
  return [least, Math.max(most, least + 1e-4)];
}
