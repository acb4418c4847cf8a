// A page that was opened as a file may not read other files, so what a search finds comes without an excerpt there.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// A reader who says what is seen on the button, its keys included, must find it by that name.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".search-button-field")) button.removeAttribute("aria-label");
});

// The arrows that open a part of the contents have no words of their own.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("summary:has(.toctree-toggle)")) {
    const link = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
});
