// A page that was opened as a file may not read other files, so results of a search come without an excerpt there.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
