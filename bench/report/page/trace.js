// Reading: events of the trace become groups, one for each policy, of lanes with
// slices in order of time, and counters. Times are microseconds since the start of
// the group.

// tick is less than a nanosecond: sums of floats are not exact.
const tick = 1e-4;

// unpack returns the text of the trace that the page holds.
async function unpack() {
  const packed = atob(document.getElementById("trace").textContent);
  const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// deviceCauses are the colours of tasks by category; host spans have those of the
// page's map.
const deviceCauses = { launch: "busy", copy: "copy", record: "event", wait: "event", update: "event", preprocess: "tiling", replay: "wait", nop: "wait" };

// readGroups sorts events into groups.
function readGroups(events, hostCauses) {
  const groups = new Map();
  const group = (pid) => {
    if (!groups.has(pid)) groups.set(pid, { name: `process ${pid}`, rows: new Map(), counters: new Map(), feet: new Map(), heads: [], shown: true });
    return groups.get(pid);
  };
  const row = (g, tid) => {
    if (!g.rows.has(tid)) g.rows.set(tid, { name: `row ${tid}`, host: tid === 0, slices: [] });
    return g.rows.get(tid);
  };
  for (const e of events) {
    const g = group(e.pid);
    switch (e.ph) {
      case "M":
        if (e.name === "process_name") g.name = e.args.name;
        else row(g, e.tid).name = e.args.name;
        break;
      case "X": {
        const r = row(g, e.tid);
        const cause = (r.host ? hostCauses[e.cat] : deviceCauses[e.cat]) ?? "other";
        r.slices.push({ name: e.name, category: e.cat, cause, start: e.ts, end: e.ts + e.dur, args: e.args ?? {}, call: null, tasks: [] });
        break;
      }
      case "s":
        g.feet.set(e.id, e.ts);
        break;
      case "f":
        g.heads.push({ id: e.id, tid: e.tid, at: e.ts });
        break;
      case "C":
        if (!g.counters.has(e.name)) g.counters.set(e.name, []);
        g.counters.get(e.name).push({ at: e.ts, value: e.args.value });
        break;
    }
  }
  return [...groups.values()].map(finish);
}

// finish puts a group in order.
function finish(g) {
  let origin = Infinity;
  for (const r of g.rows.values()) for (const s of r.slices) origin = Math.min(origin, s.start);
  if (origin === Infinity) origin = 0;
  const lanes = [];
  let end = 0;
  for (const [, r] of [...g.rows.entries()].sort((a, b) => a[0] - b[0])) {
    for (const s of r.slices) {
      s.start -= origin;
      s.end -= origin;
      end = Math.max(end, s.end);
    }
    r.lanes = nest(r);
    lanes.push(...r.lanes);
  }
  const arrows = join(g, origin);
  const counters = [...g.counters.entries()].map(([name, samples]) => {
    for (const s of samples) s.at -= origin;
    return { name, samples, max: samples.reduce((m, s) => Math.max(m, s.value), 0) };
  });
  return { name: g.name, lanes, counters, arrows, end, shown: true, step: firstStep(lanes) };
}

// nest spreads the slices of a row over lanes by depth.
function nest(r) {
  r.slices.sort((a, b) => a.start - b.start || b.end - a.end);
  const lanes = [];
  const open = [];
  for (const s of r.slices) {
    while (open.length > 0 && open.at(-1).end <= s.start + tick) open.pop();
    const depth = open.length;
    if (depth === lanes.length) lanes.push({ name: depth === 0 ? r.name : "", row: r.name, host: r.host, slices: [] });
    s.lane = lanes[depth];
    s.index = s.lane.slices.length;
    s.lane.slices.push(s);
    open.push(s);
  }
  return lanes;
}

// join ties host calls to the tasks that they have enqueued.
function join(g, origin) {
  const arrows = [];
  const host = g.rows.get(0);
  for (const h of g.heads) {
    const from = g.feet.get(h.id);
    const task = g.rows.get(h.tid)?.lanes.map((l) => l.slices[firstEndingAfter(l, h.at - origin)]).findLast((s) => s && Math.abs(s.start - (h.at - origin)) < tick);
    if (from === undefined || !task || !host) continue;
    const at = from - origin;
    const call = host.lanes.map((l) => l.slices[firstEndingAfter(l, at - tick)]).findLast((s) => s && s.start <= at + tick);
    task.call = { at, slice: call ?? null };
    call?.tasks.push(task);
    arrows.push(task);
  }
  return arrows.sort((a, b) => a.start - b.start);
}

// firstEndingAfter returns the index of the first slice of a lane that ends after a
// moment.
function firstEndingAfter(lane, at) {
  let low = 0, high = lane.slices.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.slices[middle].end > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

// firstStep is the end of the first step, 0 when nobody marked it.
function firstStep(lanes) {
  for (const l of lanes) for (const s of l.slices) if (s.category === "step") return s.end;
  return 0;
}
