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
  var drawings = {
    sinusoid: {
      sliders: [["position", 0, 200, 7]],
      draw: function (m) {
        var svg = "";
        frequencies(16, 10000).forEach(function (w, t) {
          svg += ring(45 + 78 * t, 45, 34) + hand(45 + 78 * t, 45, 34, m * w, "abs");
        });
        return [svg, 640, 90, "Eight clocks of 16 features at position " + m + ": the first turns one radian per token, the last 0.0003."];
      }
    },
    rope: {
      sliders: [["query at", 0, 60, 4], ["key at", 0, 60, 7]],
      draw: function (m, n) {
        var w = 0.5, q = [1, 2], k = [3, -1], c = Math.cos((n - m) * w), s = Math.sin((n - m) * w);
        var score = (q[0] * k[0] + q[1] * k[1]) * c + (q[1] * k[0] - q[0] * k[1]) * s;
        var svg = ring(70, 70, 60) + hand(70, 70, 40, m * w + Math.atan2(2, 1), "rot") + hand(70, 70, 60, n * w + Math.atan2(-1, 3), "rel");
        return [svg, 140, 140, "offset " + (n - m) + ": score " + score.toFixed(4) + ". Move both by the same number of tokens: the score stays."];
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
