(function () {
  var entries = INDEX, form = document.getElementById("search"), input = form.querySelector("input"), list = form.querySelector("ul"), at = -1;
  form.hidden = false;
  function text(s) { var n = document.createElement("span"); n.textContent = s; return n.innerHTML; }
  function score(entry, word) {
    var title = entry[0].toLowerCase(), what = entry[1].toLowerCase(), i = title.indexOf(word);
    return title === word ? 9 : i === 0 ? 7 : i > 0 ? 5 : what.indexOf(word) >= 0 ? 3 : entry[4].indexOf(word) >= 0 ? 2 : 0;
  }
  function total(entry, words) {
    var sum = 0;
    for (var k = 0; k < words.length; k++) { var s = score(entry, words[k]); if (!s) return 0; sum += s; }
    return sum + (entry[2].indexOf("#") < 0 ? 8 : entry[3] === "mut" ? 0 : 2);  // pages first, theorems last
  }
  function show() {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean), found = [];
    entries.forEach(function (entry) { var s = words.length && total(entry, words); if (s) found.push([s, entry]); });
    found.sort(function (a, b) { return b[0] - a[0]; });
    at = -1; list.hidden = !words.length;
    list.innerHTML = found.slice(0, 9).map(function (f) {
      return '<li><a href="' + f[1][2] + '"><b style="color:var(--' + f[1][3] + ')">' + text(f[1][0]) + "</b><span>" + text(f[1][1]) + "</span></a></li>";
    }).join("") || "<li class=nothing>Nothing. Try a model, a framework or a symptom.</li>";
  }
  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  document.addEventListener("click", function (e) { if (!form.contains(e.target) || e.target.closest("a")) list.hidden = true; });
  document.addEventListener("keydown", function (e) {
    if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); }
    if (e.key === "Escape") { list.hidden = true; input.blur(); }
  });
  input.addEventListener("keydown", function (e) {
    var links = list.querySelectorAll("a");
    if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
    e.preventDefault();
    at = Math.max(0, Math.min(links.length - 1, at + (e.key === "ArrowDown" ? 1 : -1)));
    links.forEach(function (link, n) { link.classList.toggle("on", n === at); });
  });
  function reveal() {  // what an address names may be folded
    var target = document.getElementById(decodeURIComponent(location.hash.slice(1))), fold = target && target.querySelector(":scope > details");
    for (var n = fold || target; n; n = n.parentElement) if (n.tagName === "DETAILS") n.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  form.addEventListener("submit", function (e) {
    e.preventDefault();
    var links = list.querySelectorAll("a");
    if (links.length) { list.hidden = true; location.href = links[Math.max(at, 0)].href; }
  });
})();
