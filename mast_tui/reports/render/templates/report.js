"use strict";
// Numbers sort as numbers, words as words, and cells without a value stand last either way. Rows
// stay in their group.
const value = (row, column) => {
  const cell = row.cells[column];
  if (!("v" in cell.dataset)) return cell.textContent;
  return cell.dataset.v === "" ? null : Number(cell.dataset.v);
};
const compare = (a, b) => {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
};
const sortBy = (table, heads, column) => {
  const down = heads[column].getAttribute("aria-sort") === "ascending";
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  for (const body of table.tBodies) {
    body.append(...[...body.rows].sort((one, other) => {
      const a = value(one, column), b = value(other, column);
      return a === null || b === null || !down ? compare(a, b) : compare(b, a);
    }));
  }
};
// A copy has numbers in full, and the ends of an interval in columns of their own.
const csv = (table, heads) => {
  const quoted = (text) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const ranged = (column) => "interval" in heads[column].dataset;
  const line = (cells) => cells.map(quoted).join(",");
  const titles = heads.flatMap(({ textContent: t }, i) => ranged(i) ? [t, `${t} low`, `${t} high`] : [t]);
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).map((row) => line(
    [...row.cells].flatMap(({ dataset, textContent }, i) => {
      const own = dataset.v ?? textContent;
      return ranged(i) ? [own, dataset.low ?? "", dataset.high ?? ""] : [own];
    })));
  return [line(titles), ...rows, ""].join("\n");
};
const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where the page may not use the clipboard, it copies a selection as the keys do.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
  return true;
};
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    if (!button.textContent) button.setAttribute("aria-label", "sort by this column");
    button.addEventListener("click", () => sortBy(table, heads, column));
  });
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.setAttribute("aria-live", "polite");
  button.textContent = "Copy as CSV";
  table.closest(".box").after(button);
  button.addEventListener("click", async () => {
    button.textContent = await copy(csv(table, heads)) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = "Copy as CSV"; }, 2000);
  });
}
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", unfold);
unfold();
// What is folded on the screen stands open on paper.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
