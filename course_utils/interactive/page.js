// What every piece is built with: elements, colours, numbers, the reader's theme, and its place in the page.

const SVG = "http://www.w3.org/2000/svg";

// matplotlib's cividis at 17 places, with straight lines between them: made for colour-blind readers.
const RAMP = [
  [0, 34, 78], [0, 46, 106], [26, 56, 111], [50, 67, 109], [67, 78, 108], [83, 90, 109],
  [97, 101, 111], [111, 112, 115], [125, 124, 120], [140, 136, 120], [155, 148, 118], [171, 160, 114],
  [188, 174, 108], [205, 187, 99], [222, 201, 88], [240, 216, 70], [254, 232, 56],
];

// The colour [red, green, blue] of a share from 0 to 1.
function rampColour(share) {
  const place = Math.min(1, Math.max(0, share)) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((value, index) => Math.round(value + (place - low) * (RAMP[low + 1][index] - value)));
}

function rampCss(share) {
  return "rgb(" + rampColour(share).join(",") + ")";
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// An element of HTML; text among the children stays text, whatever it holds.
function html(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function hidden(text) {
  return html("span", { class: "unseen" }, text);
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

// The place that an arrow key, Home or End leads to in a list (or a grid with `columns`), or null for another key.
function placeAfterKey(key, place, length, columns) {
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns || 1, ArrowUp: -(columns || 1) };
  if (key === "Home") return 0;
  if (key === "End") return length - 1;
  if (!(key in steps)) return null;
  const next = place + steps[key];
  return next < 0 || next >= length ? place : next;
}

// Only the current one of several elements is reached by Tab; arrows move among them.
function setCurrent(nodes, current) {
  nodes.forEach((node, index) => node.setAttribute("tabindex", index === current ? "0" : "-1"));
}

// Call for each new width of an element; in the next frame, since the call may change the element's height.
function watchWidth(node, call) {
  let width = 0;
  const watcher = new ResizeObserver((entries) => {
    const next = entries[0].contentRect.width;
    if (next === width || next === 0) return;
    width = next;
    requestAnimationFrame(() => call(next));
  });
  watcher.observe(node);
  return watcher;
}

function isDark(host) {
  for (const node of [document.documentElement, document.body]) {
    const theme = node.getAttribute("data-theme") || node.getAttribute("theme"); // Sphinx; Colab
    if (theme === "dark" || theme === "light") return theme === "dark";
    const light = node.getAttribute("data-jp-theme-light"); // JupyterLab
    if (light) return light === "false";
    if (node.classList.contains("vscode-dark")) return true;
    if (node.classList.contains("vscode-light")) return false;
  }
  // Anywhere else: where the text is light, the page is dark.
  const [red, green, blue] = (getComputedStyle(host).color.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140;
}

function followTheme(host) {
  const follow = () => host.toggleAttribute("data-dark", isDark(host));
  const observer = new MutationObserver(follow);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
  follow();
}

// A key that the piece is operated with is no shortcut of the page around it: no next page in Sphinx, no next cell.
// JupyterLab looks at keys before they arrive here; it heeds the attribute.
function keepKeys(host) {
  host.setAttribute("data-lm-suppress-shortcuts", "true");
  host.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  });
}

// Build the piece in each of its places that has none yet: the script may run again, and a page may show it twice.
function mount(key, css, build) {
  for (const host of document.querySelectorAll('[data-course-piece="' + key + '"]')) {
    if (host.shadowRoot) continue;
    const root = host.attachShadow({ mode: "open" });
    const box = html("div", { class: "piece" });
    root.append(html("style", {}, css), box);
    followTheme(host);
    keepKeys(host);
    try {
      build(box);
    } catch (error) {
      root.replaceChildren(html("slot")); // the plain figure again
      throw error;
    }
  }
}
