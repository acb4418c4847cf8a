// The attention explorer: choose layer, head and query; mask keys and see the weights of the others grow.

const SPOKEN = 6; // weights that a screen reader is told

function explorer(box, data) {
  const [layers, heads, rows, columns] = data.shape;
  const weights = unpackWeights(data.weights);
  const largest = data.weights.largest;
  const named = (names, pictures) => names.map((name, index) => ({ name, picture: pictures ? pictures[index] : null }));
  const queries = named(data.queries, data.pictures);
  const keys = data.keys ? named(data.keys, null) : queries;
  const masked = keys.map(() => false);
  const state = { layer: 0, head: 0, chosen: 0, row: null, key: null };

  const digits = data.weights.bits === 16 ? 3 : 2;
  const number = (weight) => weight.toFixed(digits);
  const lineOf = (layer, head, row) => {
    const start = ((layer * heads + head) * rows + row) * columns;
    return maskedRow(weights.subarray(start, start + columns), masked);
  };
  const mapOf = (layer, head) => queries.map((_, row) => lineOf(layer, head, row));
  const titleOf = (layer, head) => "layer " + (layer + 1) + ", head " + (head + 1);

  // All layers and heads, small.
  const canvases = [];
  const tiles = [];
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const place = tiles.length;
      canvases.push(html("canvas", { width: columns, height: rows }));
      tiles.push(html("button",
        {
          type: "button", role: "radio", class: "tile", "aria-label": titleOf(layer, head), title: titleOf(layer, head),
          click: () => chooseMap(place),
          keydown: (event) => {
            const next = placeAfterKey(event.key, place, tiles.length, heads);
            if (next === null) return;
            event.preventDefault();
            chooseMap(next);
            tiles[next].focus();
          },
        },
        canvases[place]));
    }
  }
  const overview = html("div", { class: "overview", role: "radiogroup", "aria-label": "layer and head",
    style: "grid-template-columns:auto repeat(" + heads + ",minmax(0,3.2rem))" });
  overview.append(html("span", { class: "small side", "aria-hidden": "true" }, "head"));
  for (let head = 0; head < heads; head++) overview.append(html("span", { class: "small", "aria-hidden": "true" }, String(head + 1)));
  for (let layer = 0; layer < layers; layer++) {
    overview.append(html("span", { class: "small side", "aria-hidden": "true" }, "layer " + (layer + 1)));
    overview.append(...tiles.slice(layer * heads, (layer + 1) * heads));
  }

  const map = attentionMap({
    queries, keys, label: "attention map, a row for each query",
    hover: (row, key) => { state.row = row; state.key = row === null ? null : key; drawRow(); },
    choose: (row) => { state.chosen = row; state.row = null; state.key = null; drawRow(); say(); },
    pressKey: (key) => toggle(key),
  });

  // The weights of one query, a button for each key.
  const buttons = keys.map((key, place) => {
    const picture = key.picture ? html("img", { src: key.picture, alt: "", class: "thumb" }) : null;
    const button = html("button",
      {
        type: "button", class: "key", "aria-pressed": "false", title: key.name,
        click: () => { setCurrent(buttons, place); toggle(place); },
        focus: () => { setCurrent(buttons, place); state.key = place; drawRow(); },
        blur: () => { state.key = null; drawRow(); },
        keydown: (event) => {
          const next = placeAfterKey(event.key, place, buttons.length);
          if (next === null) return;
          event.preventDefault();
          buttons[next].focus();
        },
      },
      hidden("mask key " + (place + 1) + ": "), picture || html("span", { class: "name" }, key.name),
      picture ? hidden(key.name + " ") : hidden(" "), html("span", { class: "number" }), html("span", { class: "bar", "aria-hidden": "true" }));
    return button;
  });
  setCurrent(buttons, 0);
  const numbers = buttons.map((button) => button.querySelector(".number"));
  const bars = buttons.map((button) => button.querySelector(".bar"));
  const heading = html("p", { class: "heading" });
  const readout = html("p", { class: "readout", "aria-hidden": "true" });
  const status = html("p", { class: "unseen", role: "status" });
  const reset = html("button", { type: "button", class: "plain", click: unmaskAll }, "Unmask all");
  const scale = html("div");

  function chooseMap(place) {
    state.layer = Math.floor(place / heads);
    state.head = place % heads;
    drawAll();
    say();
  }

  function toggle(key) {
    masked[key] = !masked[key];
    drawAll();
    say();
  }

  function unmaskAll() {
    masked.fill(false);
    drawAll();
    say();
    buttons.find((button) => button.tabIndex === 0).focus(); // the button pressed is disabled now
  }

  function drawOverview() {
    tiles.forEach((tile, place) => {
      const chosen = place === state.layer * heads + state.head;
      tile.setAttribute("aria-checked", String(chosen));
      const context = canvases[place].getContext("2d");
      const image = context.createImageData(columns, rows);
      mapOf(Math.floor(place / heads), place % heads).forEach((line, row) => line.forEach((weight, column) => {
        const [red, green, blue] = masked[column] ? [140, 140, 140] : rampColour(weight / largest);
        image.data.set([red, green, blue, 255], 4 * (row * columns + column));
      }));
      context.putImageData(image, 0, 0);
    });
    setCurrent(tiles, state.layer * heads + state.head);
  }

  function drawRow() {
    const shown = state.row === null ? state.chosen : state.row;
    const line = lineOf(state.layer, state.head, shown);
    map.mark(shown, state.chosen, state.key);
    heading.textContent = "Query " + (shown + 1) + ", “" + queries[shown].name + "”, in " + titleOf(state.layer, state.head);
    readout.textContent = state.key === null
      ? "weights add up to " + number(line.reduce((sum, weight) => sum + weight, 0))
      : "“" + queries[shown].name + "” gives “" + keys[state.key].name + "” " + (masked[state.key] ? "nothing: it is masked" : number(line[state.key]));
    buttons.forEach((button, key) => {
      numbers[key].textContent = masked[key] ? "masked" : number(line[key]);
      bars[key].style.width = 100 * line[key] + "%";
      button.setAttribute("aria-pressed", String(masked[key]));
      button.classList.toggle("crossed", key === state.key);
      button.style.setProperty("--share", masked[key] ? "transparent" : rampCss(line[key] / largest));
    });
  }

  function drawAll() {
    drawOverview();
    map.colour(mapOf(state.layer, state.head), largest, masked);
    drawRow();
    scale.replaceChildren(colourScale(largest, masked.some(Boolean) ? " or more" : ""));
    reset.disabled = !masked.some(Boolean);
  }

  // Tell the chosen query's weights, the largest first.
  function say() {
    const line = lineOf(state.layer, state.head, state.chosen);
    const order = line.map((_, key) => key).sort((a, b) => line[b] - line[a]).filter((key) => line[key] > 0);
    const told = order.slice(0, SPOKEN).map((key) => keys[key].name + " " + number(line[key]));
    const rest = order.slice(SPOKEN).reduce((sum, key) => sum + line[key], 0);
    if (order.length > SPOKEN) told.push("the other " + (order.length - SPOKEN) + " together " + number(rest));
    const count = masked.filter(Boolean).length;
    status.textContent = titleOf(state.layer, state.head) + ", query " + (state.chosen + 1) + ", " + queries[state.chosen].name + ": "
      + (told.length ? told.join(", ") : "no weights") + (count ? "; " + count + " masked" : "");
  }

  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Attention explorer");
  if (tiles.length > 1) box.append(overview);
  box.append(
    html("div", { class: "sides" },
      html("div", { class: "side-map", style: "flex-basis:" + Math.max(260, 60 + 13 * columns) + "px" }, map.node, scale),
      html("div", { class: "side-row" },
        heading, readout,
        html("div", { class: "keys", role: "toolbar", "aria-label": "keys, press to mask" }, ...buttons),
        html("p", { class: "line" }, reset))),
    status,
    html("p", { class: "note" },
      "Point at a row of the map to see its weights, click to keep it; with the keyboard, Tab and the arrow keys. "
      + "Click a key, or press Space on it, to mask it: its weight becomes 0 and the others of each row are scaled up to a sum of 1, as this layer’s softmax "
      + "would with that mask. Earlier layers are not computed anew. Weights are rounded to within " + data.weights.error + "."));
  drawAll();
  say();
}
