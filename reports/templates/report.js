// Filters, tooltips and sorting. The page is complete without this script.
"use strict";
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const controls = document.querySelector(".controls");
  const filters = Object.fromEntries(all("[data-filter]", controls).map(one => [one.dataset.filter, one]));
  const said = controls.querySelector("[role=status]");
  const known = Object.fromEntries(
    Object.keys(filters).map(kind => [kind, new Set(JSON.parse(controls.dataset.known)[kind])]));

  const name = cell => (cell.querySelector("a") || cell.firstChild || cell).textContent.trim();

  // Engine, interpreter and workload that these texts name.
  function named(texts) {
    const found = {};
    for (const text of texts)
      for (const kind in known) if (known[kind].has(text)) found[kind] ??= text;
    return found;
  }

  const tables = all("table").map(table => {
    const workload = table.closest("[data-workload]")?.dataset.workload;
    const columns = [...table.tHead.rows[0].cells].map(cell =>
      named([name(cell), name(cell).split(": ")[0], name(cell).replace(/^on /, "")]));
    const rows = [...table.tBodies[0].rows].map(row =>
      [row, { workload, ...named(all("th, .name", row).map(name)) }]);
    return { table, columns, rows };
  });
  const marks = all("[data-cell]").map(mark => {
    const [engine, interpreter, workload] = mark.dataset.cell.split("/");
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.remove();
    return [mark, { engine, interpreter, workload }];
  });

  function fits(keys) {
    const words = filters.engine.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const fitting = !keys.engine || !words.length || words.some(word => keys.engine.toLowerCase().includes(word));
    return fitting && ["interpreter", "workload"].every(
      kind => !filters[kind].value || !keys[kind] || keys[kind] === filters[kind].value);
  }

  function sift() {
    let shown = 0, total = 0;
    for (const { table, columns, rows } of tables) {
      const visible = columns.map(fits);
      for (const [row, keys] of rows) {
        row.hidden = !fits(keys);
        if (keys.engine) { total += 1; shown += !row.hidden; }
      }
      if (visible.some((fit, index) => fit === table.tHead.rows[0].cells[index].hidden)) {
        for (const row of table.rows)
          if (row.cells.length === visible.length)
            visible.forEach((fit, index) => { row.cells[index].hidden = !fit; });
      }
    }
    for (const part of all("details[data-workload]")) part.hidden = !fits(part.dataset);
    for (const [mark, keys] of marks) mark.classList.toggle("off", !fits(keys));
    said.textContent = shown === total ? "" : `${shown} of ${total} rows shown`;
  }

  for (const filter of Object.values(filters)) filter.addEventListener("input", sift);
  controls.querySelector("button").addEventListener("click", () => {
    for (const filter of Object.values(filters)) filter.value = "";
    sift();
  });

  // Tooltips: a mark's own text, or what a table says of a figure; then the run and its machine.
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;

  function told(target) {
    const mark = target.closest("[data-cell]");
    if (mark) return mark.dataset.tip;
    const cell = target.closest("td.number");
    const table = cell && tables.find(({ table }) => table === cell.closest("table"));
    if (!table || !name(cell)) return "";
    const keys = { ...table.columns[cell.cellIndex], ...table.rows.find(([row]) => row === cell.parentNode)?.[1] };
    if (!keys.engine) return "";
    const below = cell.querySelector(".below")?.textContent;
    const where = [keys.engine, keys.interpreter, keys.workload].filter(Boolean).join("/");
    const heading = name(table.table.tHead.rows[0].cells[cell.cellIndex]);
    return `${where}, ${heading}: ${name(cell)}${below ? ` (${below})` : ""}.`;
  }

  function show(event) {
    const text = event.type === "pointerout" ? "" : told(event.target);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = `${text} ${document.body.dataset.run}`;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    const above = event.clientY + 16 + tip.offsetHeight > innerHeight;
    tip.style.top = `${above ? event.clientY - tip.offsetHeight - 8 : event.clientY + 16}px`;
  }
  for (const type of ["pointerover", "pointerout", "click"]) document.addEventListener(type, show);
  document.addEventListener("keydown", event => { if (event.key === "Escape") tip.hidden = true; });

  // Sorting, by the seconds, bytes or ratio that a text stands for.
  const UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, kB: 1e3, MB: 1e6, GB: 1e9 };
  const AFTER = { none: "ascending", ascending: "descending", descending: "none" };
  const collator = new Intl.Collator("en", { numeric: true });

  function value(cell) {
    const found = /^(?:≈ )?(-?[\d,]+(?:\.\d+)?)(?:e(-?\d+))?[ ×]?(\S*)/.exec(cell ? name(cell) : "");
    return found && Number(found[1].replaceAll(",", "")) * 10 ** (found[2] ?? 0) * (UNITS[found[3]] ?? 1);
  }

  function sort({ table, rows }, column) {
    const headings = [...table.tHead.rows[0].cells];
    const order = AFTER[headings[column].getAttribute("aria-sort") ?? "none"];
    for (const heading of headings) heading.removeAttribute("aria-sort");
    const sorted = rows.map(([row]) => row);
    if (order !== "none") {
      headings[column].setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const isNumber = headings[column].classList.contains("number");
      sorted.sort((one, other) => {
        const [a, b] = [one.cells[column], other.cells[column]];
        if (!isNumber) return sign * collator.compare(name(a), name(b));
        const [x, y] = [value(a), value(b)];
        // Rows without a figure come last in either direction.
        return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
      });
    }
    table.tBodies[0].append(...sorted);
  }

  for (const entry of tables.filter(({ table }) => table.classList.contains("sortable"))) {
    [...entry.table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(entry, column));
      heading.append(button);
    });
  }

  // A link into a folded part unfolds it.
  function unfold() {
    let part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!part) return;
    for (let above = part; (above = above.parentElement?.closest("details"));) above.open = true;
    part.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();

  controls.hidden = false;
})();
