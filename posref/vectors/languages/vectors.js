// Loader and comparator of the golden vectors in JavaScript; CC0 1.0. `worst` at most 1 passes; `named` says which mistake it is.
"use strict";

// The parsed file; in a browser `JSON.parse` of what was fetched is the same.
function load(path) {
  const file = JSON.parse(require("fs").readFileSync(path, "utf8"));
  if (file.schema !== "posref-vectors-3") throw new Error(`${path}: unknown schema ${file.schema}`);
  return file;
}

// got - expected, 0 where it is ignored; none of another length.
const differences = (c, got) =>
  got.length === c.expected.data.length ? c.expected.data.map((x, i) => (c.ignore && c.ignore[i] ? 0 : got[i] - x)) : [];

const rowLength = (c) => (c.gauge === "row_constant" ? c.expected.shape[c.expected.shape.length - 1] : 0);

function worst(file, c, got, model) {
  const m = file.models[model], d = differences(c, got), row = rowLength(c);
  if (d.length !== c.expected.data.length) return Infinity;
  const cond = (name, i, absent) => (c.cond[name] ? c.cond[name][i] : absent);
  const allowed = c.expected.data.map((x, i) => c.cond === null ? 0 : m.floor + 1.03125 *
    (m.c_phase * (c.growth[model] || 1) * cond("phase", i, 0) + m.c_amp * cond("amp", i, 0) + m.c_out * cond("out", i, Math.abs(x))));
  let most = 0, squares = 0, count = 0;
  const meet = (error, bound) => {
    const ratio = error === 0 ? 0 : Math.abs(error) / bound;
    most = Number.isFinite(error) ? Math.max(most, ratio) : Infinity;
    squares += ratio * ratio;
    count += 1;
  };
  for (let i = 0; i < d.length; i++) {
    if (c.ignore && c.ignore[i]) continue;
    if (!row) meet(d[i], allowed[i]);
    for (let j = i - (i % row); j < i; j++) if (!(c.ignore && c.ignore[j])) meet(d[i] - d[j], allowed[i] + allowed[j]);
    if (!Number.isFinite(d[i])) return Infinity;
  }
  return c.rms[model] && count ? Math.max(most, Math.sqrt(squares / count) / c.rms[model]) : most;
}

function named(c, got) {
  const d = differences(c, got), row = rowLength(c), sums = [0, 0, 0, 0];
  d.forEach((x, i) => {
    const own = c.ignore && c.ignore[i] ? 0 : row ? x - d[i - (i % row)] : x;
    [1, 2, 4, 6].forEach((tag, t) => { sums[t] += (own * (((7 * i * i + 31 * i + 17 * tag) % 251) - 125)) / 64; });
  });
  const size = (numbers) => numbers.reduce((total, x) => total + Math.abs(x), 0);
  return Object.keys(c.fingerprints).filter((flag) => size(c.fingerprints[flag].map((x, t) => sums[t] - x)) < size(sums) / 64);
}

if (typeof module !== "undefined") module.exports = { load, worst, named };
