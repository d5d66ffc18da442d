"use strict";
const byId = (id) => document.getElementById(id);
const tools = byId("tools"), find = byId("find"), found = byId("found"), root = document.documentElement;
tools.hidden = false;
// Search: only the spans that hold the text stay, and each match is highlighted.
const articles = [...document.querySelectorAll("article")];
const texts = new Map();
const textOf = (article) => {
  if (!texts.has(article)) texts.set(article, article.textContent.toLowerCase());
  return texts.get(article);
};
let matches = [], at = -1;
const highlight = (needle) => {
  if (!("highlights" in CSS)) return;
  const ranges = [];
  for (const article of matches.slice(0, 500)) {
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (let i = text.indexOf(needle); i >= 0; i = text.indexOf(needle, i + needle.length)) {
        const range = new Range();
        range.setStart(node, i);
        range.setEnd(node, i + needle.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
};
const search = () => {
  const needle = find.value.trim().toLowerCase();
  at = -1;
  matches = needle ? articles.filter((article) => textOf(article).includes(needle)) : [];
  const kept = new Set(matches);
  for (const article of articles) article.hidden = needle !== "" && !kept.has(article);
  found.textContent = needle === "" ? "" : `${matches.length} of ${articles.length} spans`;
  if (needle) highlight(needle); else if ("highlights" in CSS) CSS.highlights.delete("found");
};
const show = (element) => {
  for (let one = element; one; one = one.parentElement) {
    if (one instanceof HTMLDetailsElement) one.open = true;
  }
  element.scrollIntoView({ block: "start" });
};
const next = () => {
  if (!matches.length) return;
  at = (at + 1) % matches.length;
  const article = matches[at], needle = find.value.trim().toLowerCase();
  for (const fold of article.querySelectorAll("details")) {
    if (fold.textContent.toLowerCase().includes(needle)) fold.open = true;
  }
  show(article);
  found.textContent = `${at + 1} of ${matches.length} spans`;
};
let waiting = 0;
find.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 120);
});
find.addEventListener("keydown", (event) => {
  if (event.key === "Enter") next();
});
byId("next").addEventListener("click", next);
// Folds.
const folds = () => [...document.querySelectorAll("article > details")];
const unfold = byId("unfold");
unfold.addEventListener("click", () => {
  const open = unfold.getAttribute("aria-pressed") !== "true";
  for (const fold of folds()) fold.open = open;
  unfold.setAttribute("aria-pressed", String(open));
  unfold.textContent = open ? "Fold all" : "Unfold all";
});
// A link to a span or a label opens what it is folded in, and ends a search that hides it.
const toTarget = () => {
  const target = byId(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const article = target.closest("article");
  if (article && article.hidden) {
    find.value = "";
    search();
  }
  show(target);
};
addEventListener("hashchange", toTarget);
if (location.hash) toTarget();
// Light or dark.
const theme = byId("theme");
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
nameTheme();
// What is folded on the screen is printed whole.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
