// compare.md: two models side by side, by the answers of `posref explain`, and the tokens that each pair needs for one full turn.
(function () {
  var models = MODELS, box = document.querySelector("div.compare"), colours = ["rot", "abs"];
  box.innerHTML = '<div></div><svg viewBox="0 0 640 200" role="img" aria-label="tokens for one full turn of each pair"></svg><p aria-live="polite"></p>' +
    '<table class="cards"><thead><tr><th></th><th></th><th></th></tr></thead><tbody></tbody></table>';
  var selects = ["Llama-2-7b-hf", "Llama-3.1-8B"].map(function (chosen, n) {
    var label = document.createElement("label"), select = document.createElement("select");
    Object.keys(models).forEach(function (name) { select.add(new Option(name, name, false, name === chosen)); });
    label.append(n ? "second " : "first ", select);
    label.style.color = "var(--" + colours[n] + ")";
    select.addEventListener("change", show);
    box.firstChild.append(label);
    return select;
  });
  function height(tokens) { return 175 - 16 * Math.log10(tokens); }
  function curve(turns, colour) {
    var points = turns.map(function (tokens, t) { return 80 + (550 * t) / Math.max(turns.length - 1, 1) + "," + height(tokens).toFixed(1); });
    return '<polyline fill="none" stroke-width="3" stroke="var(--' + colour + ')" points="' + points.join(" ") + '"/>';
  }
  function kind(set) {  // "text_config: layers 5, 11 (2, full attention)": the part of the model, and the kind of attention
    var said = /^(?:(\w+): )?.*\(\d+, (.*)\)$/.exec(set.layers);
    return { part: /^(encoder|vision.*|audio.*)$/.test(said[1]) ? said[1] : "text", attention: said[2] };
  }
  function alike(a, b) {
    a = kind(a); b = kind(b);
    return (a.part === b.part) * (1 + (a.attention === b.attention));
  }
  function abreast(ours, theirs) {  // sets of layers of one part and kind side by side, then those of one part, then the others alone
    var left = theirs.slice(), rows = ours.map(function (set) { return [set, {}]; });
    [2, 1].forEach(function (least) {
      rows.forEach(function (row) {
        var at = row[1].layers ? -1 : left.findIndex(function (set) { return alike(row[0], set) >= least; });
        if (at >= 0) row[1] = left.splice(at, 1)[0];
      });
    });
    return rows.concat(left.map(function (set) { return [{}, set]; }));
  }
  function show() {
    var names = selects.map(function (select) { return select.value; }), body = box.querySelector("tbody"), differing = [];
    var two = names.map(function (name) { return models[name].layers; });
    box.querySelector("svg").innerHTML = [10, 1000, 100000].map(function (tokens) {
      var y = height(tokens);
      return '<path d="M80 ' + y + 'h550" stroke="var(--line)"/><text x="74" y="' + (y + 5) + '" text-anchor="end" font-size="17" fill="var(--mut)">' + tokens + "</text>";
    }).join("") + '<text x="630" y="195" text-anchor="end" font-size="17" fill="var(--mut)">pairs, fast ones left; tokens for one full turn</text>' +
      names.map(function (name, n) { return models[name].turns.map(function (turns) { return curve(turns, colours[n]); }).join(""); }).join("");
    box.querySelectorAll("thead th").forEach(function (head, n) { head.textContent = n ? names[n - 1] : ""; });
    body.textContent = "";
    abreast(two[0], two[1]).forEach(function (sets) {
      var a = sets[0], b = sets[1];
      Object.keys(Object.assign({}, a, b)).forEach(function (word) {
        var row = body.insertRow(), head = document.createElement("th"), same = a[word] === b[word];
        head.textContent = word;
        row.append(head);
        row.className = same ? "equal" : "unlike";
        if (!same && differing.indexOf(word) < 0) differing.push(word);
        [a[word], b[word]].forEach(function (said, n) {
          var cell = row.insertCell();
          cell.dataset.l = names[n];
          cell.append(document.createElement("div"));
          cell.firstChild.textContent = said || "\u2013";
        });
      });
    });
    box.querySelector("p").textContent = differing.length ? "Different: " + differing.join(", ") + "." : "Nothing differs.";
  }
  show();
})();
