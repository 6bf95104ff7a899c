"use strict";
// Filters the list of trajectories. Without JavaScript the page is complete; only the filters are missing.
(function () {
  const root = document.documentElement;
  const items = Array.from(document.querySelectorAll("#trajectories .item"));
  const form = document.getElementById("filters");
  const count = document.getElementById("count");
  if (!form) { return; }
  root.classList.add("js");
  const names = ["run", "policy", "task", "medal", "status"];
  const texts = new Map();

  function textOf(item) {
    if (!texts.has(item)) { texts.set(item, item.textContent.toLowerCase()); }
    return texts.get(item);
  }

  function matches(item) {
    for (const name of names) {
      const field = form.elements[name];
      if (field && field.value && item.dataset[name] !== field.value) { return false; }
    }
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    return words.every(function (word) { return textOf(item).includes(word); });
  }

  function apply() {
    let shown = 0;
    for (const item of items) {
      item.hidden = !matches(item);
      shown += item.hidden ? 0 : 1;
    }
    count.textContent = shown + " of " + items.length + " shown";
  }

  function set(values) {
    form.reset();
    for (const name of names) {
      if (form.elements[name] && values[name] !== undefined) { form.elements[name].value = values[name]; }
    }
    apply();
  }

  let timer = 0;
  form.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(apply, 120); });
  form.addEventListener("submit", function (event) { event.preventDefault(); apply(); });
  form.addEventListener("reset", function () { setTimeout(apply, 0); });
  document.getElementById("open-all").addEventListener("click", function () {
    const visible = items.filter(function (item) { return !item.hidden; });
    const open = visible.some(function (item) { return !item.open; });
    for (const item of visible) { item.open = open; }
  });
  document.addEventListener("click", function (event) {
    const link = event.target.closest("a[data-filter]");
    if (link) { set({ task: link.dataset.task, policy: link.dataset.policy, run: link.dataset.run }); }
  });

  function follow() {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (target && target.tagName === "DETAILS") { target.open = true; }
  }
  window.addEventListener("hashchange", follow);
  follow();
  apply();
})();
