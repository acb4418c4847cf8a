// The odd-one-out game: the reader chooses in each set, then sees the model's probabilities and both scores.

function oddOneOutGame(box, data) {
  const state = { round: 0, chosen: null, reader: 0, model: 0, played: 0 };
  const rounds = data.rounds;
  const size = rounds[0].pictures.length;

  const heading = html("p", { class: "heading" });
  const status = html("p", { class: "verdict", role: "status" });
  const next = html("button", { type: "button", class: "plain", click: goOn });
  const score = html("p", { class: "score" });
  const cards = Array.from({ length: size }, (_, place) => {
    const card = html("button",
      {
        type: "button", class: "card",
        click: () => { setCurrent(cards, place); choose(place); },
        focus: () => setCurrent(cards, place),
        keydown: (event) => {
          const to = placeAfterKey(event.key, place, size);
          if (to === null) return;
          event.preventDefault();
          cards[to].focus();
        },
      },
      html("img", { alt: "image " + (place + 1) + " of " + size }), html("span", { class: "track", "aria-hidden": "true" }, html("span", { class: "level" })),
      html("span", { class: "number" }), html("span", { class: "marks" }));
    return card;
  });
  const part = (card, name) => card.querySelector(name);

  function choose(place) {
    if (state.chosen !== null) return;
    const { odd, probabilities } = rounds[state.round];
    const models = probabilities.indexOf(Math.max(...probabilities));
    state.chosen = place;
    state.played += 1;
    state.reader += place === odd ? 1 : 0;
    state.model += models === odd ? 1 : 0;
    cards.forEach((card, index) => {
      part(card, ".level").style.width = 100 * probabilities[index] + "%";
      part(card, ".number").textContent = percent(probabilities[index]);
      const marks = [[index === odd, "odd one"], [index === place, "you"], [index === models, "model"]];
      part(card, ".marks").replaceChildren(...marks.filter(([is]) => is).map(([, text]) => html("span", { class: "mark" }, text)));
      card.classList.toggle("odd", index === odd);
      card.classList.toggle("chosen", index === place);
      card.setAttribute("aria-disabled", "true");
    });
    status.textContent = (place === odd ? "Right: " : "Not this one: ") + "image " + (odd + 1) + " is the odd one. "
      + "The model gives it " + percent(probabilities[odd]) + (models === odd ? "" : ", and image " + (models + 1) + " " + percent(probabilities[models])) + ".";
    next.hidden = false;
    next.textContent = state.round + 1 < rounds.length ? "Next set" : "Play again";
    showScore();
  }

  function percent(probability) {
    if (probability > 0.999 && probability < 1) return "> 99.9 %";
    return (100 * probability).toFixed(1) + " %";
  }

  function showScore() {
    const of = (count) => count + " of " + state.played;
    score.textContent = state.played === 0 ? "" : "You found " + of(state.reader) + ", the model " + of(state.model) + ".";
  }

  function goOn() {
    if (state.round + 1 < rounds.length) state.round += 1;
    else Object.assign(state, { round: 0, reader: 0, model: 0, played: 0 });
    start();
    cards[0].focus();
  }

  function start() {
    state.chosen = null;
    heading.textContent = "Set " + (state.round + 1) + " of " + rounds.length + ": which image is of another class?";
    cards.forEach((card, index) => {
      part(card, "img").src = rounds[state.round].pictures[index];
      part(card, ".level").style.width = "0";
      part(card, ".number").textContent = "";
      part(card, ".marks").replaceChildren();
      card.classList.remove("odd", "chosen");
      card.removeAttribute("aria-disabled");
    });
    setCurrent(cards, 0);
    status.textContent = "";
    next.hidden = true;
    showScore();
  }

  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Find the odd one");
  box.append(heading, html("div", { class: "cards", role: "toolbar", "aria-label": "images" }, ...cards), status,
    html("p", { class: "line" }, next, score),
    html("p", { class: "note" }, "Click an image, or go to it with Tab and the arrow keys and press Space. "
      + "Then the bars show the model’s probability that an image is the odd one; those of a set add up to 100 %."));
  start();
}
