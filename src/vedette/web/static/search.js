// What makes the pages quicker: results while typing, keys, filters that apply at once, and the switch between dark and light.
{
  const root = document.documentElement;
  const field = document.getElementById("q");
  const form = field?.form;
  root.classList.add("scripted");

  if (field) {
    const ask = async (typed, signal) => {
      const site = document.querySelector("select[name=site]")?.value || "";
      const params = new URLSearchParams(site ? { q: typed, site } : { q: typed });
      const answer = await fetch("/api/v1/instant?" + params, { signal });
      return answer.ok ? answer.json() : {};
    };
    const link = (page) => {
      const isDemo = form.hasAttribute("data-demo") && page.cached_url && /^[^/]*\/\/[^/]*\.test(\/|$)/.test(page.url);
      return isDemo ? page.cached_url : /^https?:/i.test(page.url) ? page.url : "";
    };
    offerSuggestions(field, ask, link, () => form.requestSubmit());
    // What was not chosen need not stand in the address.
    const set = (off) => [...form.elements].forEach((one) => { if (one.matches("select") && !one.value) one.disabled = off; });
    form.addEventListener("submit", () => set(true));
    addEventListener("pageshow", () => set(false));
    for (const one of document.querySelectorAll(".filters select")) one.addEventListener("change", () => form.requestSubmit());
  }

  const titles = [...document.querySelectorAll("a.title")];
  const step = (by) => {
    const here = document.activeElement.closest?.(".result");
    const now = titles.findIndex((title) => here?.contains(title));
    const next = now < 0 ? (by > 0 ? 0 : -1) : now + by;
    if (next < 0 && now >= 0 && field) field.focus();
    titles[Math.min(next, titles.length - 1)]?.focus();
  };

  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const on = event.target;
    const typing = on.matches?.("input, textarea, select, [contenteditable]");
    const { key } = event;
    if (key === "ArrowDown" && on === field && titles.length) step(1);
    else if (typing) return;
    else if (key === "/" && field) { field.focus(); field.select(); }
    else if (key === "j" && titles.length) step(1);
    else if (key === "k" && titles.length) step(-1);
    else if (on.matches?.("a.title") && key === "ArrowDown") step(1);
    else if (on.matches?.("a.title") && key === "ArrowUp") step(-1);
    else return;
    event.preventDefault();
  });

  const button = document.querySelector("button.theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => { button.textContent = isDark() ? "Light mode" : "Dark mode"; };
  if (button) {
    button.hidden = false;
    label();
    dark.addEventListener("change", label);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      // The server writes the choice into the next page, so that it never flashes in the other colours.
      document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
      label();
    });
  }
}
