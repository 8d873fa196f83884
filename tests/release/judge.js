// judge FILE GOT: a line `ID MODEL WORST FLAGS..` for every {"Id", "Got"} of GOT; rope FILE LAYOUT: RoPE of this program.
"use strict";
const { load, worst, named } = require("./vectors.js");

function rope(c, layout) {
  const { dim, base } = c.params, width = c.tensors.x.shape[c.tensors.x.shape.length - 1], y = c.tensors.x.data.slice();
  for (let row = 0; row * width < y.length; row++)
    for (let t = 0; t < dim / 2; t++) {
      const angle = c.tensors.positions.data[row] * base ** ((-2 * t) / dim);
      const first = row * width + (layout === "half" ? t : 2 * t), second = first + (layout === "half" ? dim / 2 : 1);
      const [a, b] = [y[first], y[second]];
      y[first] = a * Math.cos(angle) - b * Math.sin(angle);
      y[second] = a * Math.sin(angle) + b * Math.cos(angle);
    }
  return y;
}

const [, , mode, path, last] = process.argv, file = load(path);
const say = (c, got) => c.models.forEach((model) => console.log([c.id, model, worst(file, c, got, model), ...named(c, got)].join(" ")));
if (mode === "rope") file.cases.filter((c) => c.id === "rope/half/d8-b1e4/tiny").forEach((c) => say(c, rope(c, last)));
else {
  const known = new Map(file.cases.map((c) => [c.id, c]));
  for (const { Id, Got } of JSON.parse(require("fs").readFileSync(last, "utf8"))) say(known.get(Id), Got.map(Number));
}
