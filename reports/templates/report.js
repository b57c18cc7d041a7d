// Sort, filter and copy the table of every record. The page is complete without this script.
"use strict";
(() => {
  const records = document.querySelector(".records");
  const table = records.querySelector("table");
  const headings = [...table.tHead.rows[0].cells];
  const inOrder = [...table.tBodies[0].rows];
  const controls = records.querySelector(".controls");
  const filter = controls.querySelector("input");
  const area = controls.querySelector("textarea");
  const said = name => controls.querySelector(`[data-said="${name}"]`);

  const isNumber = cell => "v" in cell.dataset;
  const text = cell => cell.textContent.trim();
  const shown = () => [...table.tBodies[0].rows].filter(row => !row.hidden);

  // Sorting.
  const collator = new Intl.Collator("en", { numeric: true });
  const AFTER = { none: "ascending", ascending: "descending", descending: "none" };

  function compare(one, other, column, sign) {
    const [a, b] = [one.cells[column], other.cells[column]];
    const [x, y] = isNumber(a) ? [a.dataset.v, b.dataset.v] : [text(a), text(b)];
    // Cells without a figure come last in either direction.
    if (x === "" || y === "") return (x === "") - (y === "");
    if (!isNumber(a)) return sign * collator.compare(x, y);
    // Comparisons, not a difference: between two infinities that is NaN.
    const [left, right] = [Number(x), Number(y)];
    return sign * ((left > right) - (left < right));
  }

  function sort(column) {
    const order = AFTER[headings[column].getAttribute("aria-sort") || "none"];
    for (const heading of headings) heading.removeAttribute("aria-sort");
    const rows = [...inOrder];
    if (order !== "none") {
      headings[column].setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      rows.sort((one, other) => compare(one, other, column, sign));
    }
    table.tBodies[0].append(...rows);
    forget();
  }

  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(column));
    heading.append(button);
  });

  // Filtering.
  const searched = new Map(
    inOrder.map(row => [row, [...row.cells].map(cell => text(cell).toLowerCase())]));

  function sift() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const [row, cells] of searched) {
      row.hidden = !words.every(word => cells.some(cell => cell.includes(word)));
      count += !row.hidden;
    }
    said("count").textContent = `${count} of ${inOrder.length} shown`;
    forget();
  }

  filter.addEventListener("input", sift);

  // Copying.
  function csvCell(value, number) {
    // A spreadsheet runs a cell that starts like a formula; an apostrophe makes it text.
    const safe = !number && /^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/.test(value) ? `'${value}` : value;
    return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv() {
    const names = headings.map(heading => heading.dataset.name);
    const rows = shown().map(row =>
      [...row.cells].map(cell => csvCell(isNumber(cell) ? cell.dataset.v : text(cell), isNumber(cell))));
    return [names, ...rows].map(row => row.join(",") + "\r\n").join("");
  }

  function markdownCell(cell) {
    return text(cell).split(/\s+/).join(" ")
      .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(/[\\`*_[\]|~]/g, "\\$&");
  }

  function markdown() {
    const rules = headings.map(heading => (isNumber(heading) ? "---:" : "---"));
    const rows = shown().map(row => [...row.cells].map(markdownCell));
    return [headings.map(markdownCell), rules, ...rows].map(row => `| ${row.join(" | ")} |\n`).join("");
  }

  // The message about a copy is out of date once other rows are shown.
  function forget() {
    said("copied").textContent = "";
    area.hidden = true;
  }

  async function copy(format) {
    const content = format === "csv" ? csv() : markdown();
    forget();
    const rows = shown().length;
    try {
      await navigator.clipboard.writeText(content);
      said("copied").textContent = `Copied ${rows} ${rows === 1 ? "row" : "rows"}.`;
    } catch {
      // The page has no clipboard, or may not use it.
      area.value = content;
      area.hidden = false;
      area.focus();
      area.select();
      said("copied").textContent = "Selected below: press Ctrl+C or ⌘C to copy.";
    }
  }

  for (const button of controls.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button.dataset.copy));
  }

  sift();
  controls.hidden = false;
})();
