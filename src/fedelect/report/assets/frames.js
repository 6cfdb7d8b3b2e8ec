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

/** The least and the greatest value of a kind in all frames of a run, for the colours. */
const extents = new WeakMap();

function extentOf(run, kind) {
  if (kind === "share") return [0, 1];
  if (!extents.has(run)) extents.set(run, {});
  const known = extents.get(run);
  if (!known[kind]) {
    const scale = 10 ** (kind === "opinion" ? run.map.opinionDecimals : run.map.beliefDecimals);
    let [least, most] = [Infinity, -Infinity];
    run.selectors.forEach((_, index) => {
      const array = framesOf(run, index)[kind === "opinion" ? "opinions" : "beliefs"];
      if (!array) return;
      for (const number of array.numbers) {
        if (number === array.missing) continue;
        if (number < least) least = number;
        if (number > most) most = number;
      }
    });
    known[kind] = least > most ? [0, 1] : [least / scale, Math.max(most / scale, least / scale + 1e-4)];
  }
  return known[kind];
}
