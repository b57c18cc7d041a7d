// Sorting, and links into closed parts. The page is complete without this script.
"use strict";
(() => {
  const UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, kB: 1e3, MB: 1e6, GB: 1e9 };
  const AFTER = { none: "ascending", ascending: "descending", descending: "none" };
  const collator = new Intl.Collator("en", { numeric: true });
  // The text of a cell, without its bar and what is below it.
  const name = cell => cell?.querySelector("summary b, .beside")?.textContent
    ?? [...(cell?.childNodes ?? [])].find(node => node.nodeType === 3)?.textContent.trim() ?? "";

  // The seconds, bytes or ratio that a text stands for; null without a figure. "none" compiles in no time.
  function value(cell) {
    if (name(cell) === "none") return 0;
    const parts = /^(?:[≈<]\s)?(-?[\d,]+(?:\.\d+)?)(?:e(-?\d+))?[\s×]?(\S*)/.exec(name(cell));
    return parts && Number(parts[1].replaceAll(",", "")) * 10 ** (parts[2] ?? 0) * (UNITS[parts[3]] ?? 1);
  }

  // A table has one body for each row that can be opened, or one body with all rows.
  for (const table of document.querySelectorAll("table.sortable")) {
    const several = table.tBodies.length > 1 || table.classList.contains("ranked");
    const rows = several ? [...table.tBodies] : [...table.tBodies[0].rows];
    const cell = (row, column) => (several ? row.rows[0] : row).cells[column];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const order = AFTER[heading.getAttribute("aria-sort") ?? "none"];
        for (const other of headings) other.removeAttribute("aria-sort");
        const sorted = [...rows];
        if (order !== "none") {
          heading.setAttribute("aria-sort", order);
          const sign = order === "ascending" ? 1 : -1;
          const isNumber = heading.classList.contains("n");
          sorted.sort((one, other) => {
            const [a, b] = [cell(one, column), cell(other, column)];
            if (!isNumber) return sign * collator.compare(name(a), name(b));
            const [x, y] = [value(a), value(b)];
            // Rows without a figure come last in either direction.
            return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
          });
        }
        (several ? table : table.tBodies[0]).append(...sorted);
      });
    });
  }

  function unfold() {
    const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = part?.closest("details");
    if (!closed) return;
    closed.open = true;
    part.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();
})();
