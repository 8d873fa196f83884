(function () {
  const entries = INDEX, form = document.getElementById("search"), input = form.querySelector("input"), list = form.querySelector("ul");
  const small = /^(an?|and|are|can|do|does|for|has|how|i|in|is|it|its|my|of|the|to|what|when|where|which|why|with)$/;
  let at = -1;
  form.hidden = false;
  function text(s) { const n = document.createElement("span"); n.textContent = s; return n.innerHTML; }
  function score([title, what, , , known], word) {
    const i = title.toLowerCase().indexOf(word), begins = word.length < 4 ? " " + word : word;
    return title.toLowerCase() === word ? 9 : i === 0 ? 7 : i > 0 ? 5 : ` ${what.toLowerCase()}`.includes(begins) ? 3 : known.includes(begins) ? 2 : 0;
  }
  function total(entry, words) {  // more of the words first, then pages, theorems last; by its text alone a system before other pages
    const scores = words.map(word => score(entry, word)).filter(Boolean), place = !entry[2].includes("#") ? 8 : entry[3] === "mut" ? 0 : 2;
    return scores.reduce((sum, s) => sum + s + 100, Math.max(...scores) < 3 ? entry[3] !== "gold" : place) * (scores.length > 0);
  }
  function show() {
    const words = input.value.toLowerCase().split(/[\s,;?!"']+/).filter(word => word && !small.test(word));
    const found = entries.map(entry => [total(entry, words), entry]).filter(f => f[0]).sort((a, b) => b[0] - a[0]);
    at = -1; list.hidden = !words.length;
    list.innerHTML = found.filter(f => f[0] > found[0][0] - 50).slice(0, 9).map(([, [title, what, address, colour]]) =>
      `<li><a href="${address}"><b style="color:var(--${colour})">${text(title)}</b><span>${text(what)}</span></a></li>`
    ).join("") || "<li class=nothing>Nothing. Try a model, a framework or a symptom.</li>";
  }
  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  document.addEventListener("click", e => { if (!form.contains(e.target) || e.target.closest("a")) list.hidden = true; });
  document.addEventListener("keydown", e => {
    if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); }
    if (e.key === "Escape") { list.hidden = true; input.blur(); }
  });
  input.addEventListener("keydown", e => {
    const links = list.querySelectorAll("a"), step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    at = Math.max(0, Math.min(links.length - 1, at + step));
    links.forEach((link, n) => link.classList.toggle("on", n === at));
  });
  function reveal() {  // what an address names may be folded
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1))), fold = target && target.querySelector(":scope > details");
    for (let n = fold || target; n; n = n.parentElement) if (n.tagName === "DETAILS") n.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  form.addEventListener("submit", e => {
    e.preventDefault();
    const link = list.querySelectorAll("a")[Math.max(at, 0)];
    if (link) { list.hidden = true; location.href = link.href; }
  });
})();
