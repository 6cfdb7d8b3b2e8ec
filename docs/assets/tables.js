// Tables: a click on a heading sorts by its column, a second click turns the order; a box above data files filters rows.
(() => {
  "use strict";

  /** The number that a cell begins with, or null: "+1.0 ± 0.2", "12,000", "81.9 %", "[0.1]". */
  function numberOf(text) {
    const found = /^[^\w+\-−.]*([+\-−]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?|[+\-−]?\.\d+)/i.exec(text.trim());
    return found ? Number(found[1].replace(/,/g, "").replace("−", "-")) : null;
  }

  /** Sort the rows of a table by a column; empty cells come last. */
  function sortBy(table, column, order) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, text: row.cells[column]?.textContent.trim() ?? "" }));
    const filled = rows.filter((one) => one.text !== "");
    const numeric = filled.length > 0 && filled.every((one) => numberOf(one.text) !== null);
    rows.sort((a, b) => {
      if (a.text === "" || b.text === "") return Number(a.text === "") - Number(b.text === "");
      return order * (numeric ? numberOf(a.text) - numberOf(b.text) : a.text.localeCompare(b.text));
    });
    rows.forEach((one) => body.append(one.row));
  }

  function makeSortable(table) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      head.setAttribute("aria-sort", "none");
      const sort = () => {
        const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
        sortBy(table, column, order);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          sort();
        }
      });
    });
  }

  function makeFilter(box) {
    const input = box.querySelector("input");
    const rows = [...box.querySelectorAll("tbody tr")];
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      });
    });
  }

  document.querySelectorAll(".md-content table").forEach((table) => {
    if (table.tBodies[0]?.rows.length > 2 && !table.closest(".highlight")) makeSortable(table);
  });
  document.querySelectorAll(".data-table").forEach(makeFilter);
})();
