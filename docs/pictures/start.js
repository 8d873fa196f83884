// The sliders of start.md: each `div.try` names a drawing; a drawing gets its sliders' values and returns SVG and one sentence.
(function () {
  function frequencies(dim, base) {
    var w = [];
    for (var t = 0; t < dim / 2; t++) w.push(Math.pow(base, (-2 * t) / dim));
    return w;
  }
  function line(x1, y1, x2, y2, colour, width) {
    return '<line x1="' + x1 + '" y1="' + y1 + '" x2="' + x2 + '" y2="' + y2 + '" stroke="var(--' + colour + ')" stroke-width="' + width + '"/>';
  }
  function ring(x, y, r) { return '<circle cx="' + x + '" cy="' + y + '" r="' + r + '" fill="none" stroke="var(--line)"/>'; }
  function hand(x, y, r, angle, colour) { return line(x, y, x + r * Math.cos(angle), y - r * Math.sin(angle), colour, 3); }
  function bar(x, y, width, height, colour) {
    return '<rect x="' + x + '" y="' + y + '" width="' + width + '" height="' + height + '" fill="var(--' + colour + ')"/>';
  }
  function word(x, y, text, colour) {
    return '<text x="' + x + '" y="' + y + '" text-anchor="middle" font-size="15" fill="var(--' + colour + ')">' + text + "</text>";
  }
  function mean(query, keys) {  // one result of attention without position
    var sum = 0, total = 0;
    keys.forEach(function (key) { var e = Math.exp(query * key); sum += e; total += e * key; });
    return total / sum;
  }
  var drawings = {
    order: {
      sliders: [["words moved to the end", 0, 4, 0]],
      draw: function (moved) {
        var text = "the dog chased another dog".split(" "), value = { the: 0.3, dog: 1.4, chased: 0.1, another: 0.7 }, svg = "";
        text = text.slice(moved).concat(text.slice(0, moved));
        var keys = text.map(function (each) { return value[each]; }), dogs = mean(value.dog, keys);
        text.forEach(function (each, i) {
          var y = mean(value[each], keys), colour = each === "dog" ? "rot" : "mut";
          svg += word(60 + 130 * i, 128, each, colour) + bar(40 + 130 * i, 105 - 60 * Math.max(y, 0), 40, 60 * Math.abs(y), colour);
        });
        return [svg, 640, 140, "A bar is what a word gets from attention. In \u201c" + text.join(" ") + "\u201d each dog gets " + dogs.toFixed(4) + ", as in every other order."];
      }
    },
    count: {
      sliders: [["words", 2, 60, 20]],
      draw: function (n) {
        var svg = line(0, 117, 640, 117, "rot", 1.5);
        for (var i = 0; i < n; i++) svg += bar(8 + 10 * i, 120 - Math.max(2 * i, 1), 7, Math.max(2 * i, 1), "abs");
        return [svg, 640, 125, "The last word has the number " + (n - 1) + ". The line at 1.5 is about as large as a feature of a word."];
      }
    },
    divide: {
      sliders: [["words", 2, 40, 5]],
      draw: function (n) {
        var svg = line(20, 30, 620, 30, "line", 2);
        for (var i = 0; i < n; i++) svg += bar(17 + (600 * i) / (n - 1), 22, 6, 16, i === 1 ? "rot" : "abs");
        return [svg, 640, 60, "The second word of " + n + " is at " + (1 / (n - 1)).toFixed(3) + "."];
      }
    },
    binary: {
      sliders: [["position", 1, 63, 8]],
      draw: function (m) {
        var svg = "", changed = 0;
        for (var b = 0; b < 6; b++) {
          var now = (m >> b) & 1, differs = now !== (((m - 1) >> b) & 1);
          changed += differs;
          svg += word(50 + 60 * b, 45, now, differs ? "rot" : "fg") + ring(50 + 60 * b, 40, 22);
        }
        return [svg, 400, 80, "From position " + (m - 1) + " to " + m + ", " + changed + (changed > 1 ? " digits change." : " digit changes.")];
      }
    },
    sinusoid: {
      sliders: [["position", 0, 200, 7]],
      draw: function (m) {
        var svg = "";
        frequencies(16, 10000).forEach(function (w, t) {
          svg += ring(45 + 78 * t, 45, 34) + hand(45 + 78 * t, 45, 34, m * w, "abs");
        });
        return [svg, 640, 90, "Eight clocks of 16 features at position " + m + ": the first moves one radian per token, the last 0.0003."];
      }
    },
    rope: {
      sliders: [["query at", 0, 60, 4], ["key at", 0, 60, 7]],
      draw: function (m, n) {
        var w = 0.5, q = [1, 2], k = [3, -1], c = Math.cos((n - m) * w), s = Math.sin((n - m) * w);
        var score = (q[0] * k[0] + q[1] * k[1]) * c + (q[1] * k[0] - q[0] * k[1]) * s;
        var svg = ring(70, 70, 60) + hand(70, 70, 40, m * w + Math.atan2(2, 1), "rot") + hand(70, 70, 60, n * w + Math.atan2(-1, 3), "rel");
        return [svg + word(180, 50, "query", "rot") + word(180, 75, "key", "rel"), 220, 140, "offset " + (n - m) + ": score " + score.toFixed(4) + ". Move both by the same number of tokens: the score stays."];
      }
    },
    clocks: {
      sliders: [["offset", 0, 400, 12]],
      draw: function (offset) {
        var svg = line(0, 60, 640, 60, "line", 1), sum = 0;
        frequencies(128, 10000).forEach(function (w, t) {
          var c = Math.cos(offset * w);
          sum += c / 64;
          svg += bar(3 + 10 * t, 60 - 50 * Math.max(c, 0), 7, 50 * Math.abs(c), "rot");
        });
        return [svg, 640, 120, "64 clocks at offset " + offset + ", fast ones left: the first alone says " + Math.cos(offset).toFixed(3) + ", the mean of all " + sum.toFixed(3) + "."];
      }
    },
    bias: {
      sliders: [["head of 8", 1, 8, 2], ["distance", 0, 63, 10]],
      draw: function (head, distance) {
        var slope = Math.pow(2, -head), svg = "";
        for (var d = 0; d < 64; d++) svg += bar(630 - 10 * d, 110 - 100 * Math.exp(-slope * d), 7, 100 * Math.exp(-slope * d), d === distance ? "rot" : "rel");
        return [svg, 640, 112, "Keys before the query, near ones right. ALiBi lowers the score of distance " + distance + " by " + slope * distance + ": the key counts " + Math.exp(-slope * distance).toFixed(4) + " times as much as at distance 0."];
      }
    },
    today: {
      sliders: [["base, 10 to the power of", 4, 7, 4]],
      draw: function (power) {
        var svg = "", far = 0, base = Math.pow(10, power);
        frequencies(128, base).forEach(function (w, t) {
          var period = (2 * Math.PI) / w;
          far += period > 131072;
          svg += line(6 + 9.8 * t, 100, 6 + 9.8 * t, 100 - 5.5 * Math.log(period), period > 131072 ? "rel" : "rot", 6);
        });
        return [svg, 640, 105, "Base " + base + ": " + (64 - far) + " of 64 clocks come round within 131072 tokens, the length of Llama 3.1; the others are in the colour of biases."];
      }
    },
    longer: {
      sliders: [["text, in thousands of tokens", 1, 128, 32], ["clocks slowed down by", 1, 16, 1]],
      draw: function (thousands, factor) {
        var inside = 0, svg = "", trained = 8192;
        frequencies(128, 500000).forEach(function (w, t) {
          var seen = trained * w, now = (thousands * 1000 * w) / factor, known = seen >= 2 * Math.PI || now <= seen;
          inside += known;
          svg += line(6 + 9.8 * t, 80, 6 + 9.8 * t, 80 - 8 * Math.log(1 + now), known ? "rot" : "rel", 6);
        });
        return [svg, 640, 120, inside + " of 64 clocks stand where they stood in a training on 8192 tokens; the others, in the colour of biases, went further than ever."];
      }
    }
  };
  document.querySelectorAll("div.try").forEach(function (box) {
    var drawing = drawings[box.dataset.try], inputs = [];
    function show() {
      var made = drawing.draw.apply(null, inputs.map(function (input) { return +input.value; }));
      box.querySelector("svg").innerHTML = made[0];
      box.querySelector("p").textContent = made[3];
    }
    var size = drawing.draw.apply(null, drawing.sliders.map(function (s) { return s[3]; }));
    box.innerHTML = '<svg viewBox="0 0 ' + size[1] + " " + size[2] + '" style="width:100%;max-width:' + size[1] + 'px" role="img"></svg><p aria-live="polite"></p>';
    drawing.sliders.forEach(function (slider) {
      var label = document.createElement("label"), input = document.createElement("input");
      input.type = "range"; input.min = slider[1]; input.max = slider[2]; input.value = slider[3];
      label.append(slider[0] + " ", input);
      input.addEventListener("input", show);
      inputs.push(input);
      box.append(label);
    });
    show();
  });
})();
