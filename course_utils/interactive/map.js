// One attention map: queries down, keys across. A query is chosen by hover, click or the arrow keys.

const LONGEST_LABEL = 9; // characters; the whole name stands in the tooltip and beside the map
const LARGEST_FONT = 13; // pixels

function shortened(name) {
  const letters = Array.from(name);
  return letters.length > LONGEST_LABEL ? letters.slice(0, LONGEST_LABEL - 1).join("") + "…" : name;
}

// The width of a bold text in units of its font's size.
function widthOf(name) {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = '700 100px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'; // as in piece.css
  return ruler.measureText(name).width / 100;
}

// options: queries and keys as {name, picture}, label, and three functions: hover(query, key) with null for none,
// choose(query), and pressKey(key), or null where keys do not react.
function attentionMap(options) {
  const { queries, keys } = options;
  const hatch = svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 6, height: 6, class: "hatch-ground" }), svg("rect", { width: 2, height: 6, class: "hatch-line" }));
  const picture = svg("svg", { class: "map", role: "group", "aria-label": options.label }, svg("defs", {}, hatch));
  const corner = svg("text", { class: "axis", "aria-hidden": "true" }, "query");
  const top = svg("text", { class: "axis", "aria-hidden": "true" }, "key");
  const columnLabels = keys.map((key, column) => labelOf(key, {
    class: options.pressKey ? "label pressable" : "label",
    click: options.pressKey ? () => options.pressKey(column) : null,
  }));
  const columns = svg("g", { "aria-hidden": "true" }, ...columnLabels);
  const cells = queries.map((_, row) => keys.map((_, column) => svg("rect", {
    class: "cell",
    pointerenter: (event) => { if (event.pointerType !== "touch") options.hover(row, column); },
  })));
  const rowLabels = queries.map((query) => labelOf(query, { class: "label" }));
  const frames = queries.map(() => svg("rect", { class: "frame" }));
  const rows = queries.map((query, row) => svg("g",
    {
      role: "radio", class: "row", "aria-label": "query " + (row + 1) + ": " + query.name,
      click: () => { options.choose(row); rows[row].focus({ preventScroll: true }); },
      pointerenter: (event) => { if (event.pointerType !== "touch") options.hover(row, null); },
      keydown: (event) => {
        const next = placeAfterKey(event.key, row, queries.length);
        if (next === null && event.key !== " " && event.key !== "Enter") return;
        event.preventDefault();
        options.choose(next === null ? row : next);
        if (next !== null) rows[next].focus();
      },
    },
    rowLabels[row], ...cells[row], frames[row]));
  const group = svg("g", { role: "radiogroup", "aria-label": "query", pointerleave: () => options.hover(null, null) }, ...rows);
  const crossing = svg("rect", { class: "crossing", "aria-hidden": "true" });
  picture.append(corner, top, columns, group, crossing);
  const frame = html("div", { class: "scroll" }, picture);

  function labelOf(token, attributes) {
    const title = svg("title", {}, token.name);
    if (token.picture) return svg("image", { href: token.picture, ...attributes }, title);
    return svg("text", attributes, title, shortened(token.name));
  }

  const widest = Math.max(...queries.map((query) => widthOf(shortened(query.name))));
  const widestKey = Math.max(...keys.map((key) => widthOf(shortened(key.name))));
  let size = 0; // of a cell, in pixels
  let left = 0;
  let head = 0;
  let font = 12;

  function layOut(width) {
    const pictures = Boolean(queries[0].picture);
    left = pictures ? 40 : Math.max(40, widest * LARGEST_FONT + 8);
    const wanted = Math.floor((width - left - 4) / keys.length);
    const next = clamp(wanted, pictures ? 18 : 12, 34);
    if (next === size) return;
    size = next;
    font = clamp(size - 2, 11, LARGEST_FONT);
    const upright = Boolean(keys[0].picture) || widestKey * font < size;
    head = 18 + (keys[0].picture ? Math.min(size, 26) + 4 : upright ? font + 6 : widestKey * font + 8);
    const total = { width: left + size * keys.length + 2, height: head + size * queries.length + 2 };
    fill(picture, { ...total, viewBox: "0 0 " + total.width + " " + total.height }, []);
    fill(corner, { x: 0, y: head - 5 }, []);
    fill(top, { x: left, y: 12 }, []);
    columnLabels.forEach((label, column) => placeLabel(label, left + (column + 0.5) * size, head - 5, upright ? "above" : "turned"));
    rowLabels.forEach((label, row) => placeLabel(label, left - 5, head + (row + 0.5) * size, "before"));
    cells.forEach((line, row) => line.forEach((cell, column) => fill(cell,
      { x: left + column * size, y: head + row * size, width: size, height: size }, [])));
    frames.forEach((each, row) => fill(each, { x: 1, y: head + row * size, width: total.width - 2, height: size, rx: 2 }, []));
    fill(crossing, { width: size, height: size }, []);
  }

  function placeLabel(label, x, y, how) {
    if (label.tagName === "image") {
      const side = Math.min(size - 2, 26);
      fill(label, { width: side, height: side, x: how === "before" ? x - side : x - side / 2, y: how === "before" ? y - side / 2 : y - side }, []);
      return;
    }
    const turn = how === "turned" ? "rotate(-90 " + x + " " + y + ")" : "rotate(0)";
    fill(label, { x, y: how === "turned" ? y + font * 0.35 : y, "font-size": font, transform: turn, dy: how === "before" ? "0.35em" : 0,
      "text-anchor": how === "before" ? "end" : how === "above" ? "middle" : "start" }, []);
    if (how === "turned") fill(label, { x: x + font * 0.35, y, transform: "rotate(-90 " + (x + font * 0.35) + " " + y + ")" }, []);
  }

  layOut(320); // until it is known how wide the place is
  const watcher = watchWidth(frame, layOut);

  // matrix: rows of weights; largest: the weight that has the last colour; masked: of the keys.
  function colour(matrix, largest, masked) {
    matrix.forEach((line, row) => line.forEach((weight, column) => {
      cells[row][column].setAttribute("fill", masked[column] ? "url(#hatch)" : rampCss(weight / largest));
    }));
    columnLabels.forEach((label, column) => label.classList.toggle("masked", Boolean(masked[column])));
  }

  // shown: the query that is pointed at, or else the chosen one; key: the key that is pointed at, or null.
  function mark(shown, chosen, key) {
    rows.forEach((row, index) => {
      row.setAttribute("aria-checked", String(index === chosen));
      row.classList.toggle("shown", index === shown);
    });
    setCurrent(rows, chosen);
    crossing.style.display = key === null ? "none" : "";
    if (key !== null) fill(crossing, { x: left + key * size, y: head + shown * size }, []);
  }

  return { node: frame, colour, mark, stop: () => watcher.disconnect() };
}

// The colour scale: from 0 to the largest weight.
function colourScale(largest, note) {
  const stops = RAMP.map((_, index) => rampCss(index / (RAMP.length - 1))).join(",");
  return html("div", { class: "scale" },
    html("span", {}, "weight 0"),
    html("span", { class: "ramp", style: "background:linear-gradient(to right," + stops + ")", "aria-hidden": "true" }),
    html("span", {}, largest.toFixed(2) + (note || "")));
}
