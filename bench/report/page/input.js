// Input: mouse, keyboard and buttons of the timeline.

const byID = (id) => document.getElementById(id);

function wire(view) {
  const { canvas } = view;
  view.onDraw = () => {
    canvas.dataset.from = view.from;
    canvas.dataset.to = view.to;
    const every = (view.to - view.from) / 1000;
    byID("range").textContent = `${micros(view.from, every)} to ${micros(view.to, every)}`;
  };
  const select = (s) => {
    view.selected = s;
    byID("details").textContent = s ? describe(s) : "Choose a slice for its details.";
    view.redraw();
  };
  const actions = {
    "zoom-in": () => view.zoom(2),
    "zoom-out": () => view.zoom(0.5),
    "pan-left": () => view.pan(-0.25),
    "pan-right": () => view.pan(0.25),
    "one-step": () => view.show(0, view.step),
    "all-steps": () => view.show(0, view.whole),
  };
  for (const [id, act] of Object.entries(actions)) byID(id).addEventListener("click", act);
  byID("arrows").addEventListener("change", (e) => {
    view.arrows = e.target.checked;
    view.redraw();
  });
  wireGroups(view, select);
  wireMouse(view, select);
  wireKeys(view, select, actions);
  new ResizeObserver(() => view.redraw()).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.redraw());
}

// wireGroups makes a box for each policy that shows or hides it.
function wireGroups(view, select) {
  for (const g of view.groups) {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      g.shown = box.checked;
      if (view.selected && g.lanes.includes(view.selected.lane)) select(null);
      view.redraw();
    });
    label.append(box, ` ${g.name}`);
    byID("groups").append(label);
  }
}

function wireMouse(view, select) {
  const { canvas } = view, tip = byID("tip");
  let drag = null;
  canvas.addEventListener("wheel", (e) => {
    if (e.ctrlKey || e.metaKey) view.zoom(Math.exp(-e.deltaY * 0.004), view.time(e.offsetX));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) view.pan((Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.deltaY) / view.plot);
    else return; // the page scrolls
    e.preventDefault();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    drag = { x: e.offsetX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(e.pointerId);
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (e) => {
    if (drag && Math.abs(e.offsetX - drag.x) > 3) drag.moved = true;
    if (drag?.moved) {
      const by = ((drag.x - e.offsetX) / view.plot) * (drag.to - drag.from);
      canvas.classList.add("dragging");
      view.show(drag.from + by, drag.to + by);
    }
    hint(view, tip, drag?.moved ? null : view.at(e.offsetX, e.offsetY), e.offsetX, e.offsetY);
  });
  const release = (e) => {
    if (drag && !drag.moved && e.type === "pointerup") select(view.at(e.offsetX, e.offsetY));
    drag = null;
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hint(view, tip, null));
  canvas.addEventListener("dblclick", (e) => {
    const s = view.at(e.offsetX, e.offsetY);
    if (s) closer(view, s);
    else view.zoom(2, view.time(e.offsetX));
  });
}

// hint shows a slice's name and length beside the mouse.
function hint(view, tip, slice, x = 0, y = 0) {
  tip.hidden = !slice;
  if (!slice) return;
  tip.textContent = `${slice.name}, ${micros(slice.end - slice.start, 0.001)}`;
  tip.style.left = `${Math.min(x + 12, Math.max(0, view.width - tip.offsetWidth))}px`;
  tip.style.top = `${y + 14}px`;
}

// closer fills the view with a slice.
function closer(view, s) {
  const margin = Math.max(s.end - s.start, shortest) * 0.1;
  view.show(s.start - margin, s.end + margin);
}

function wireKeys(view, select, actions) {
  const keys = {
    "+": actions["zoom-in"], "=": actions["zoom-in"], w: actions["zoom-in"],
    "-": actions["zoom-out"], s: actions["zoom-out"],
    ArrowLeft: actions["pan-left"], a: actions["pan-left"],
    ArrowRight: actions["pan-right"], d: actions["pan-right"],
    0: actions["all-steps"], 1: actions["one-step"],
    ArrowUp: () => reveal(view, select, otherLane(view, -1)),
    ArrowDown: () => reveal(view, select, otherLane(view, 1)),
    "[": () => reveal(view, select, neighbour(view, -1)),
    "]": () => reveal(view, select, neighbour(view, 1)),
    Enter: () => view.selected && closer(view, view.selected),
    Escape: () => select(null),
  };
  view.canvas.addEventListener("keydown", (e) => {
    const act = keys[e.key];
    if (!act || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    act();
  });
}

// reveal selects a slice and brings it into sight.
function reveal(view, select, s) {
  if (!s) return;
  select(s);
  const span = view.to - view.from;
  if (s.end < view.from || s.start > view.to) view.show((s.start + s.end - span) / 2, (s.start + s.end + span) / 2);
}

function neighbour(view, by) {
  const s = view.selected;
  return s ? s.lane.slices[s.index + by] : otherLane(view, 1);
}

// otherLane is the slice in the lane above or below that is nearest in time.
function otherLane(view, by) {
  const lanes = view.lanes(), s = view.selected;
  const lane = lanes[s ? lanes.indexOf(s.lane) + by : 0];
  if (!lane) return null;
  const at = firstEndingAfter(lane, s ? s.start : view.from);
  return lane.slices[Math.min(at, lane.slices.length - 1)];
}

// describe says all about a slice.
function describe(s) {
  const exact = (t) => micros(t, 0.001);
  let text = `${s.name} on ${s.lane.row}: ${exact(s.end - s.start)}, from ${exact(s.start)} to ${exact(s.end)}`;
  for (const [key, value] of Object.entries(s.args)) if (value !== "") text += `; ${key} ${value}`;
  if (s.call) text += `; enqueued ${exact(s.start - s.call.at)} before it started${s.call.slice ? `, by ${s.call.slice.name}` : ""}`;
  if (s.tasks.length > 0) text += `; enqueued ${s.tasks.length === 1 ? s.tasks[0].name : `${s.tasks.length} tasks`}`;
  return `${text}.`;
}

unpack().then((text) => {
  const groups = readGroups(JSON.parse(text).traceEvents, JSON.parse(byID("causes").textContent));
  const view = new View(byID("timeline"), groups);
  wire(view);
  view.draw();
}).catch((err) => {
  byID("details").textContent = `The timeline cannot be read: ${err.message}`;
  console.error(err);
});
