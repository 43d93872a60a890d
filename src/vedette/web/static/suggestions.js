// A field that offers how what is being typed may go on. `ask(typed, signal)` promises an array of texts.
function offerSuggestions(field, ask, submit) {
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = field.id + "-suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  field.after(list);
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
    field.value = at < 0 ? typed : items[at].textContent;
    if (at < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", items[at].id);
  };

  const show = (texts) => {
    list.replaceChildren(...texts.map((text, i) => {
      const item = document.createElement("li");
      item.id = list.id + "-" + i;
      item.setAttribute("role", "option");
      item.dir = "auto";
      item.textContent = text; // never as markup
      item.setAttribute("aria-selected", "false");
      return item;
    }));
    at = -1;
    list.hidden = !texts.length;
    field.setAttribute("aria-expanded", String(!!texts.length));
  };

  field.addEventListener("input", () => {
    close();
    typed = field.value;
    if (!typed.trim()) return;
    timer = setTimeout(async () => {
      going = new AbortController();
      const { signal } = going;
      try {
        const texts = await ask(typed, signal);
        if (!signal.aborted) show(texts.filter((text) => typeof text === "string").slice(0, 8));
      } catch { /* without suggestions the field is what it was */ }
    }, 120);
  });

  field.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    if (event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "Escape") { field.value = typed; close(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (!item) return;
    field.value = item.textContent;
    close();
    submit();
  });
  field.addEventListener("blur", close);
  field.form.addEventListener("submit", close);
}
