// Drawing: a View shows groups between two moments on a canvas.

const laneHeight = 15, rowGap = 5, titleHeight = 26, counterHeight = 26, bottom = 6;
const shortest = 0.01; // microseconds that a view shows at least

class View {
  constructor(canvas, groups) {
    this.canvas = canvas;
    this.groups = groups;
    this.selected = null;
    this.arrows = true;
    this.whole = Math.max(shortest, ...groups.map((g) => g.end));
    this.step = Math.max(...groups.map((g) => g.step)) || this.whole;
    this.from = 0;
    this.to = this.step;
    this.onDraw = () => {};
  }

  get gutter() { return this.width < 600 ? 78 : 150; }
  get plot() { return Math.max(1, this.width - this.gutter); }
  x(t) { return this.gutter + ((t - this.from) / (this.to - this.from)) * this.plot; }
  time(x) { return this.from + ((x - this.gutter) / this.plot) * (this.to - this.from); }

  // show sets what is seen, kept within what there is.
  show(from, to) {
    const span = Math.min(Math.max(to - from, shortest), this.whole);
    this.from = Math.min(Math.max(from, 0), this.whole - span);
    this.to = this.from + span;
    this.redraw();
  }

  // zoom makes a moment's surroundings larger by a factor.
  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(Math.max((this.to - this.from) / factor, shortest), this.whole);
    const share = (around - this.from) / (this.to - this.from);
    this.show(around - share * span, around + (1 - share) * span);
  }

  // pan moves by a share of what is seen.
  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  // redraw draws with the next frame.
  redraw() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  // layout gives every lane and counter its place and returns the height.
  layout() {
    let y = 0;
    for (const g of this.groups) {
      if (!g.shown) continue;
      g.y = y;
      y += titleHeight;
      g.lanes.forEach((l, i) => {
        if (i > 0 && l.name) y += rowGap;
        l.y = y;
        y += laneHeight;
      });
      for (const c of g.counters) {
        y += rowGap;
        c.y = y;
        y += counterHeight;
      }
      y += bottom;
    }
    return Math.max(y, titleHeight);
  }

  draw() {
    const height = this.layout(), scale = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.canvas.style.height = `${height}px`;
    if (this.canvas.width !== Math.round(this.width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(this.width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const style = getComputedStyle(document.documentElement), known = {};
    this.colours = (name) => (known[name] ??= style.getPropertyValue(`--${name}`));
    const c = this.canvas.getContext("2d");
    this.c = c;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.fillStyle = this.colours("paper");
    c.fillRect(0, 0, this.width, height);
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = "middle";
    const shown = this.groups.filter((g) => g.shown);
    for (const g of shown) this.drawTitle(g);
    c.save();
    c.beginPath();
    c.rect(this.gutter, 0, this.plot, height);
    c.clip();
    for (const g of shown) {
      for (const l of g.lanes) this.drawLane(l);
      for (const k of g.counters) this.drawCounter(k);
    }
    for (const g of shown) this.drawArrows(g);
    if (this.selected) this.drawSelected();
    c.restore();
    for (const g of shown) this.drawLabels(g);
    this.onDraw();
  }

  // drawTitle draws the band of a group with the ticks of time.
  drawTitle(g) {
    const c = this.c;
    c.fillStyle = this.colours("band");
    c.fillRect(0, g.y, this.width, titleHeight - 4);
    c.fillStyle = this.colours("ink");
    c.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    c.textAlign = "left";
    c.fillText(g.name, 6, g.y + 11, this.gutter - 10);
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    const last = g.counters.at(-1)?.y + counterHeight || g.lanes.at(-1)?.y + laneHeight || g.y;
    const every = roundUp((this.to - this.from) * 90 / this.plot);
    for (let i = Math.ceil(this.from / every); i * every <= this.to; i++) {
      const x = this.x(i * every);
      c.fillStyle = this.colours("line");
      c.fillRect(x, g.y + 17, 1, last - g.y - 17);
      c.fillStyle = this.colours("soft");
      c.textAlign = x > this.width - 70 ? "right" : "left";
      c.fillText(micros(i * every, every), x + (c.textAlign === "left" ? 3 : -3), g.y + 11);
    }
  }

  // drawLane draws slices; those that share a pixel are drawn once.
  drawLane(lane) {
    const c = this.c, list = lane.slices;
    let i = firstEndingAfter(lane, this.from);
    while (i < list.length && list[i].start < this.to) {
      const s = list[i], x = this.x(s.start), width = this.x(s.end) - x;
      c.fillStyle = this.colours(s.cause);
      c.fillRect(x, lane.y, Math.max(width - (width > 3 ? 1 : 0), 0.75), laneHeight - 2);
      if (width > 24) this.drawName(s, x, width);
      if (width >= 1) i++;
      else i = Math.max(i + 1, firstEndingAfter(lane, this.time(Math.floor(x) + 1)));
    }
  }

  drawName(s, x, width) {
    const c = this.c, left = Math.max(x, this.gutter) + 4, room = Math.min(x + width, this.width) - left - 4;
    if (room < 12) return;
    const letters = Math.floor(room / 6);
    const text = s.name.length <= letters ? s.name : s.name.slice(0, Math.max(letters - 1, 1)) + "…";
    c.fillStyle = s.cause === "busy" ? this.colours("busy-ink") : s.cause === "wait" ? this.colours("ink") : "#0b0e11";
    c.textAlign = "left";
    c.fillText(text, left, s.lane.y + laneHeight / 2 - 0.5, room);
  }

  drawCounter(k) {
    const c = this.c, base = k.y + counterHeight - 2, tall = counterHeight - 4, n = k.samples.length;
    c.fillStyle = this.colours("copy");
    let i = Math.max(0, lastAt(k.samples, this.from));
    while (i < n && k.samples[i].at < this.to) {
      const x = Math.floor(Math.max(this.x(k.samples[i].at), this.gutter)); // whole pixels leave no seams
      let next = i + 1, high = k.samples[i].value;
      for (; next < n && this.x(k.samples[next].at) < x + 1; next++) high = Math.max(high, k.samples[next].value);
      const to = Math.floor(next < n ? this.x(k.samples[next].at) : this.x(this.to) + 1);
      const h = k.max > 0 ? (high / k.max) * tall : 0;
      c.fillRect(x, base - h, to - x, h);
      i = next;
    }
    c.fillStyle = this.colours("line");
    c.fillRect(this.gutter, base, this.plot, 1);
  }

  // drawArrows ties calls to tasks where there are few enough to follow.
  drawArrows(g) {
    const most = 250;
    if (!this.arrows) return;
    const seen = [];
    for (const t of g.arrows) {
      if (t.call.at > this.to && t.start > this.to) break;
      if (t.start >= this.from && t.call.at <= this.to && seen.push(t) > most) return;
    }
    for (const t of seen) this.drawArrow(t, 0.55, 1);
  }

  drawArrow(task, alpha, width) {
    const c = this.c, x0 = this.x(task.call.at), x1 = this.x(task.start);
    const y0 = (task.call.slice?.lane.y ?? task.lane.y) + laneHeight - 2, y1 = task.lane.y;
    const bend = Math.max(12, (y1 - y0) / 2);
    c.globalAlpha = alpha;
    c.strokeStyle = this.colours("soft");
    c.fillStyle = c.strokeStyle;
    c.lineWidth = width;
    c.beginPath();
    c.moveTo(x0, y0);
    c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1 - 4);
    c.stroke();
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x1 - 3, y1 - 5);
    c.lineTo(x1 + 3, y1 - 5);
    c.fill();
    c.globalAlpha = 1;
  }

  drawSelected() {
    const s = this.selected, c = this.c, x = this.x(s.start), width = Math.max(this.x(s.end) - x, 2);
    if (s.call) this.drawArrow(s, 1, 2);
    for (const t of s.tasks) this.drawArrow(t, 1, 2);
    c.strokeStyle = this.colours("ink");
    c.lineWidth = 2;
    c.strokeRect(x - 1, s.lane.y - 1, width + 1, laneHeight);
  }

  drawLabels(g) {
    const c = this.c, room = this.gutter - 14;
    c.textAlign = "left";
    for (const l of g.lanes) {
      c.fillStyle = this.colours("ink");
      if (l.name) c.fillText(l.name, 8, l.y + laneHeight / 2, room);
    }
    for (const k of g.counters) {
      c.fillStyle = this.colours("soft");
      c.fillText(k.name, 8, k.y + 8, room);
      c.fillText(`at most ${k.max.toLocaleString("en")}`, 8, k.y + 20, room);
    }
  }

  // at returns the slice at a place of the canvas, the nearest within two pixels.
  at(x, y) {
    if (x < this.gutter) return null;
    const lane = this.lanes().find((l) => y >= l.y && y < l.y + laneHeight);
    if (!lane) return null;
    const near = this.time(x) - this.time(x - 2);
    const s = lane.slices[firstEndingAfter(lane, this.time(x) - near)];
    return s && s.start <= this.time(x) + near ? s : null;
  }

  lanes() { return this.groups.filter((g) => g.shown).flatMap((g) => g.lanes); }
}

// lastAt is the index of the last sample up to a moment, -1 when there is none.
function lastAt(samples, at) {
  let low = 0, high = samples.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (samples[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// roundUp is the next of 1, 2, 5, 10, … times a power of ten.
function roundUp(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  for (const m of [1, 2, 5]) if (m * power >= v) return m * power;
  return 10 * power;
}

// micros writes a time; every tells how exact it has to be.
function micros(t, every = 0.1) {
  const digits = Math.min(3, Math.max(0, -Math.floor(Math.log10(every) + 1e-9)));
  return `${t.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} µs`;
}
