(function () {
  const entries = INDEX, form = document.getElementById("search"), input = form.querySelector("input"), list = form.querySelector("ul");
  const small = /^(an?|and|are|be|between|by|can|do|does|for|from|has|how|i|in|is|it|its|me|my|new|of|on|or|should|than|the|to|vs|we|what|when|where|which|why|with|you)$/;
  const stem = word => word.replace(/([^s])s$/, "$1");
  let at = -1;
  form.hidden = false;
  function text(s) { const n = document.createElement("span"); n.textContent = s; return n.innerHTML; }
  function score([title, what, , , known], word) {
    const i = title.toLowerCase().indexOf(word), begins = word.length < 4 ? " " + word : word;
    return stem(title.toLowerCase()) === word ? 9 : i === 0 ? 7 : i > 0 ? 5 : ` ${what.toLowerCase()}`.includes(begins) ? 3 : known.includes(begins) ? 2 : 0;
  }
  function total(entry, words, phrase) {  // more of the words first, then whole questions, then pages, theorems last; by its text alone a system before other pages
    const whole = phrase.includes(" ") && `${entry[0]} ${entry[1]}`.toLowerCase().includes(phrase) ? 9 : 0;
    const scores = words.map(word => score(entry, word)).filter(Boolean), place = /^models|^symptoms|^[^#]*$/.test(entry[2]) ? 8 : entry[3] === "mut" ? 0 : 2;
    return scores.reduce((sum, s) => sum + s + 100, whole + (Math.max(...scores) < 3 ? entry[3] !== "gold" : place)) * (scores.length > 0);
  }
  function show() {
    const phrase = input.value.toLowerCase().trim().replace(/[?!.]+$/, "");
    const words = phrase.split(/[\s,;?!"'/]+/).filter(word => word && !small.test(word)).map(stem);
    const found = entries.map(entry => [total(entry, words, phrase), entry]).filter(f => f[0]).sort((a, b) => b[0] - a[0]);
    at = -1; list.hidden = !words.length;
    list.innerHTML = found.filter(f => f[0] > found[0][0] - 50).slice(0, 9).map(([, [title, what, address, colour]]) =>
      `<li><a href="${address}"><b style="color:var(--${colour})">${text(title)}</b><span>${text(what)}</span></a></li>`
    ).join("") || "<li class=nothing>Nothing. Try a model, a framework or a symptom.</li>";
  }
  for (const each of ["input", "focus"]) input.addEventListener(each, show);
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
