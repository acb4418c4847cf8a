// The warm-up schedule with sliders: the curve of the learning rate follows them.

const HIGH = 250; // of the figure, in pixels; its width is that of the place it stands in
const EDGE = { left: 76, right: 24, top: 12, bottom: 40 };
const POINTS = 280;

function warmupSchedule(box, data) {
  const sliders = {
    warmup: slider("warm-up steps", 0, data.longest, 1, data.warmup, (value) => value + " steps"),
    horizon: slider("horizon (max_iters)", 1, data.longest, 1, data.horizon, (value) => value + " steps"),
    rate: slider("rate at factor 1", -5, -1, 0.01, Math.log10(data.rate), (value) => rateText(10 ** value)),
  };
  const status = html("p", { class: "verdict", role: "status" });
  const picture = svg("svg", { class: "curve", role: "img" });
  let wide = 320;

  function slider(name, low, high, step, start, text) {
    const shown = html("span", { class: "value", "aria-hidden": "true" });
    const input = html("input", { type: "range", min: low, max: high, step, input: () => draw() });
    input.value = start;
    return { input, shown, text, node: html("label", { class: "slider" }, html("span", {}, name), input, shown) };
  }

  function rateText(rate) {
    return rate === 0 ? "0" : rate < 1e-4 ? rate.toExponential(1) : Number(rate.toPrecision(2)).toString();
  }

  function draw() {
    const warmup = Number(sliders.warmup.input.value);
    const horizon = Number(sliders.horizon.input.value);
    const rate = 10 ** Number(sliders.rate.input.value);
    for (const each of Object.values(sliders)) {
      each.shown.textContent = each.text(Number(each.input.value));
      each.input.setAttribute("aria-valuetext", each.shown.textContent);
    }
    fill(picture, { viewBox: "0 0 " + wide + " " + HIGH }, []);
    const x = (step) => EDGE.left + (step / data.longest) * (wide - EDGE.left - EDGE.right);
    const y = (factor) => HIGH - EDGE.bottom - factor * (HIGH - EDGE.top - EDGE.bottom);
    const peak = schedulePeak(warmup, horizon);
    const text = (content, attributes) => svg("text", attributes, content);
    const shares = [0, 0.25, 0.5, 0.75, 1];
    const whole = (step) => scheduleFactor(step, warmup, horizon);
    picture.replaceChildren(
      ...shares.map((share) => svg("line", { class: "grid", x1: x(0), x2: wide - EDGE.right, y1: y(share), y2: y(share) })),
      ...shares.map((share) => text(rateText(share * rate), { x: EDGE.left - 8, y: y(share) + 4, "text-anchor": "end" })),
      ...shares.map((share) => text(Math.round(share * data.longest), { x: x(share * data.longest), y: HIGH - EDGE.bottom + 18, "text-anchor": "middle" })),
      text("optimizer step", { class: "axis", x: (EDGE.left + wide - EDGE.right) / 2, y: HIGH - 6, "text-anchor": "middle" }),
      text("learning rate", { class: "axis", x: 14, y: (HIGH - EDGE.bottom + EDGE.top) / 2, "text-anchor": "middle", transform: "rotate(-90 14 " + (HIGH - EDGE.bottom + EDGE.top) / 2 + ")" }),
      svg("path", { class: "without", d: stepCurve((step) => scheduleFactor(step, 0, horizon), x, y, 0, horizon) }),
      svg("line", { class: "warmup-end", x1: x(Math.min(warmup, data.longest)), x2: x(Math.min(warmup, data.longest)), y1: y(0), y2: y(1) }),
      svg("path", { class: "factor", d: stepCurve(whole, x, y, warmup, horizon) }),
      svg("circle", { class: "peak", cx: x(peak.step), cy: y(peak.factor), r: 4.5 }));
    const summary = "The largest rate is " + rateText(peak.factor * rate) + ", " + (100 * peak.factor).toFixed(1) + " % of the rate at factor 1, at step " + peak.step + ".";
    status.textContent = summary + (warmup >= horizon ? " The warm-up does not end before the horizon." : "");
    picture.setAttribute("aria-label", "Curve of the learning rate over the optimizer steps. " + summary);
  }

  // Through the ends of its parts exactly, and finely in between.
  function stepCurve(factor, x, y, warmup, horizon) {
    const steps = new Set([0, Math.min(warmup, horizon), horizon, data.longest]);
    for (let index = 0; index <= POINTS; index++) steps.add((data.longest * index) / POINTS);
    return Array.from(steps).sort((a, b) => a - b)
      .map((step, index) => (index ? "L" : "M") + x(step).toFixed(1) + " " + y(factor(step)).toFixed(1)).join("");
  }

  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Warm-up schedule");
  box.append(
    html("div", { class: "sliders" }, ...Object.values(sliders).map((each) => each.node)),
    picture, status,
    html("p", { class: "legend", "aria-hidden": "true" },
      ...[["solid", "with warm-up"], ["dashed", "without"], ["dotted", "end of the warm-up"]]
        .map(([look, text]) => html("span", { class: "entry" }, html("span", { class: "sample " + look }), text))),
    html("p", { class: "note" }, "The rate is the one at factor 1 times ½(1 + cos(π·step/horizon)) · min(1, step/warm-up), and 0 from the horizon on. "
      + "Move a slider with the mouse or the arrow keys."));
  watchWidth(picture, (width) => {
    wide = clamp(Math.round(width), 260, 704);
    draw();
  });
  draw();
}
