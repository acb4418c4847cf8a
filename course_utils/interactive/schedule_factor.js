// The learning-rate factor after a number of optimizer steps: a linear rise to the warm-up's end, times half a cosine
// down to 0 at the horizon, where it stays. No element of the page is touched here.

function scheduleFactor(step, warmup, horizon) {
  if (step >= horizon) return 0;
  const factor = 0.5 * (1 + Math.cos((Math.PI * step) / horizon));
  return step < warmup ? (factor * step) / warmup : factor;
}

// The step with the largest factor, and the factor there.
function schedulePeak(warmup, horizon) {
  let best = { step: 0, factor: 0 };
  for (let step = 0; step < horizon; step++) {
    const factor = scheduleFactor(step, warmup, horizon);
    if (factor > best.factor) best = { step, factor };
  }
  return best;
}
