// A field that offers how what is being typed may go on, and the first pages it finds (an ARIA combobox).
// `ask(typed, signal)` promises { suggestions, results }; `link(result)` says where a result leads, if anywhere.
function offerSuggestions(field, ask, link, submit) {
  const make = (name, className, ...inside) => {
    const element = document.createElement(name);
    element.className = className;
    element.append(...inside); // never as markup
    return element;
  };
  const list = make("ul", "suggestions");
  const announcement = make("span", "unseen");
  list.id = field.id + "-suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions and results");
  list.hidden = true;
  announcement.setAttribute("role", "status");
  field.after(list, announcement);
  const state = { role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" };
  for (const name in state) field.setAttribute(name, state[name]);

  let timer, going, typed = field.value, at = -1;

  const close = () => {
    clearTimeout(timer);
    going?.abort();
    list.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };

  const choose = (next) => {
    const items = [...list.children];
    at = (next + items.length + 2) % (items.length + 1) - 1; // one place beyond the list is what was typed
    items.forEach((item, i) => item.setAttribute("aria-selected", i === at));
    field.value = items[at]?.dataset.text ?? typed;
    if (at < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", items[at].id);
    items[at]?.scrollIntoView({ block: "nearest" });
  };

  const take = (item, aside) => {
    const { url, text } = item.dataset;
    close();
    if (url) { if (aside) open(url, "_blank", "noreferrer"); else location.assign(url); return; }
    field.value = text;
    submit();
  };

  const option = (item, i) => {
    item.id = list.id + "-" + i;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    return item;
  };

  const show = ({ suggestions = [], results = [] }) => {
    const texts = suggestions.filter((text) => typeof text === "string").map((text) => {
      const item = make("li", "", text);
      item.dir = "auto";
      item.dataset.text = text;
      return item;
    });
    const pages = results.filter(link).map((result) => {
      const name = make("bdi", "hit", result.heading ? result.title + " › " + result.heading : result.title || result.url);
      const item = make("li", "page", name, make("bdi", "host", result.site));
      item.dataset.url = link(result);
      return item;
    });
    const items = [...texts, ...pages];
    list.replaceChildren(...items.map(option));
    at = -1;
    list.hidden = !items.length;
    field.setAttribute("aria-expanded", String(!!items.length));
    announcement.textContent = `${texts.length} suggestions, ${pages.length} results`;
  };

  field.addEventListener("input", () => {
    close();
    typed = field.value;
    if (!typed.trim()) return;
    timer = setTimeout(async () => {
      going = new AbortController();
      const { signal } = going;
      try {
        const found = await ask(typed, signal);
        if (!signal.aborted) show(found);
      } catch { /* without suggestions the field is what it was */ }
    }, 120);
  });

  field.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    const page = event.key === "Enter" && list.children[at]?.dataset.url;
    if (event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "Escape") { field.value = typed; close(); }
    else if (page) take(list.children[at], event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  for (const kind of ["click", "auxclick"]) {
    list.addEventListener(kind, (event) => {
      const item = event.target.closest("li");
      if (item && event.button < 2) take(item, event.button === 1 || event.ctrlKey || event.metaKey);
    });
  }
  field.addEventListener("blur", close);
  field.form.addEventListener("submit", close);
}
