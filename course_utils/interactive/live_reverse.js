// The reverse model at work: type digits, and see its output and its attention.

function liveReverse(box, data) {
  const parameters = readParameters(data.parameters);
  const longest = data.length;
  const field = html("input", {
    type: "text", inputmode: "numeric", maxlength: longest, autocomplete: "off", spellcheck: "false", class: "digits", style: "--longest:" + longest,
    input: () => { keepDigits(); run(); },
  });
  const random = html("button", { type: "button", class: "plain", click: () => {
    field.value = Array.from({ length: longest }, () => Math.floor(10 * Math.random())).join("");
    run();
  } }, longest + " random digits");
  const status = html("p", { class: "verdict", role: "status" });
  const table = html("table", { class: "inout" });
  const mapPlace = html("div");
  const heading = html("p", { class: "heading" });
  const readout = html("p", { class: "readout" });
  const bars = html("div", { class: "classes" });
  const state = { digits: [], result: null, chosen: 0, row: null, key: null, map: null };

  function keepDigits() {
    const kept = field.value.replace(/[^0-9]/g, "").slice(0, longest);
    if (kept !== field.value) field.value = kept;
  }

  function run() {
    state.digits = Array.from(field.value, Number);
    state.chosen = Math.max(0, Math.min(state.chosen, state.digits.length - 1));
    state.row = state.key = null;
    if (state.map) state.map.stop();
    state.map = null;
    if (state.digits.length === 0) {
      status.textContent = "Type a digit.";
      for (const node of [table, mapPlace, heading, readout, bars]) node.replaceChildren();
      return;
    }
    const { logits, attention } = runReverseModel(parameters, state.digits);
    const probabilities = logits.map((row) => Array.from(softmax(row)));
    const outputs = probabilities.map((row) => row.indexOf(Math.max(...row)));
    const targets = state.digits.slice().reverse();
    state.result = { attention, probabilities, outputs, targets };
    drawTable();
    drawMap();
    drawRow();
    judge();
  }

  function judge() {
    const { outputs, targets } = state.result;
    const length = outputs.length;
    const right = outputs.filter((digit, place) => digit === targets[place]).length;
    status.textContent = (right === length ? "All " + length : right + " of " + length)
      + (length === 1 ? " output is right." : " outputs are right.")
      + (length === longest ? "" : " The model was trained on " + longest + " digits only; nothing in its training says what to do with " + length + ".");
  }

  function drawTable() {
    const { outputs, targets } = state.result;
    const line = (name, texts, className) => html("tr", { class: className || null },
      html("th", { scope: "row" }, name), ...texts.map((text) => html("td", {}, text)));
    table.replaceChildren(
      line("input", state.digits.map(String)),
      line("output", outputs.map(String), "output"),
      line("right?", outputs.map((digit, place) => (digit === targets[place] ? "✓" : "✗")), "judged"));
    table.querySelectorAll(".judged td").forEach((cell, place) => cell.classList.toggle("wrong", outputs[place] !== targets[place]));
  }

  function drawMap() {
    const tokens = state.digits.map((digit) => ({ name: String(digit), picture: null }));
    state.map = attentionMap({
      queries: tokens, keys: tokens, label: "attention map, a row for each position", pressKey: null,
      hover: (row, key) => { state.row = row; state.key = row === null ? null : key; drawRow(); },
      choose: (row) => { state.chosen = row; state.row = state.key = null; drawRow(); },
    });
    state.map.colour(state.result.attention, 1, []);
    mapPlace.replaceChildren(state.map.node, colourScale(1));
  }

  function drawRow() {
    const { attention, probabilities, outputs, targets } = state.result;
    const shown = state.row === null ? state.chosen : state.row;
    const weights = Array.from(attention[shown]);
    const strongest = weights.indexOf(Math.max(...weights));
    const key = state.key === null ? strongest : state.key;
    state.map.mark(shown, state.chosen, state.key);
    heading.textContent = "Position " + (shown + 1) + ": output " + outputs[shown] + ", right is " + targets[shown];
    readout.textContent = (state.key === null ? "Most attention: " : "Attention: ") + weights[key].toFixed(3)
      + " to position " + (key + 1) + ", which holds " + state.digits[key];
    bars.replaceChildren(...probabilities[shown].map((probability, digit) => html("div", { class: "class" },
      html("span", {}, String(digit)),
      html("span", { class: "track", "aria-hidden": "true" }, html("span", { class: "level", style: "width:" + 100 * probability + "%" })),
      html("span", { class: "number" }, probability.toFixed(3)))));
    table.querySelectorAll("td").forEach((cell, index) => cell.classList.toggle("shown", index % outputs.length === shown));
  }

  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "The reverse model, running in this page");
  field.value = data.start.join("");
  box.append(
    html("p", { class: "line first" }, html("label", {}, "Up to " + longest + " digits ", field), random),
    html("div", { class: "scroll" }, table),
    status,
    html("div", { class: "sides" },
      html("div", { class: "side-map" }, mapPlace),
      html("div", { class: "side-row" }, heading, readout, html("p", { class: "small" }, "probability of each digit as the output"), bars)),
    html("p", { class: "note" },
      "The " + data.count.toLocaleString("en") + " parameters of the trained model are in this page, and it is computed anew with every digit you type. "
      + "Point at a row of the map, or go to the map with Tab and choose a row with the arrow keys."));
  run();
}
