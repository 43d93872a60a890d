// A search box for other people's pages: <script src=".../embed.js" data-site="docs.example.org" async></script>
const script = document.currentScript;
if (script) {
  const origin = new URL(script.src).origin;
  const { site = "", label = "Search", placeholder = "" } = script.dataset;
  const make = (name, set, ...inside) => {
    const element = Object.assign(document.createElement(name), set);
    element.append(...inside);
    return element;
  };

  const field = make("input", { id: "q", name: "q", type: "search", autocomplete: "off", required: true, dir: "auto", maxLength: 1000, placeholder });
  const caption = make("label", { htmlFor: "q" }, label);
  const typing = make("div", { className: "typing" }, field);
  const form = make("form", { action: origin + "/search", method: "get" }, caption, typing, make("button", { type: "submit" }, label));
  form.setAttribute("role", "search");
  if (site) form.append(make("input", { type: "hidden", name: "site", value: site }));

  const box = document.createElement("div");
  const inside = box.attachShadow({ mode: "open" });
  // A sheet made here is allowed where the page's own policy forbids style elements.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { display: block; max-width: 32rem; font: 15px/1.5 system-ui, sans-serif; }
    form { display: flex; gap: 8px; }
    label, .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .typing { position: relative; flex: 1; min-width: 0; }
    input, button { box-sizing: border-box; height: 40px; padding: 0 12px; font: inherit; color: CanvasText; background: Canvas; border: 1px solid GrayText; border-radius: 6px; }
    input { width: 100%; }
    button { cursor: pointer; color: ButtonText; background: ButtonFace; }
    :focus-visible { outline: 2px solid Highlight; outline-offset: 1px; }
    .suggestions { position: absolute; z-index: 1000; inset: 44px 0 auto; margin: 0; padding: 4px 0; list-style: none; color: CanvasText; background: Canvas; border: 1px solid GrayText; border-radius: 6px; }
    .suggestions[hidden] { display: none; }
    li { padding: 8px 12px; cursor: pointer; overflow-wrap: anywhere; }
    .host { display: block; font-size: 12px; opacity: .75; }
    li.page { border-top: 1px solid color-mix(in srgb, GrayText 30%, Canvas); }
    li:hover, li[aria-selected="true"] { color: HighlightText; background: Highlight; }
  `);
  inside.adoptedStyleSheets = [sheet];
  inside.append(form);
  script.replaceWith(box);

  offerSuggestions(field, async (typed, signal) => {
    const params = new URLSearchParams(site ? { q: typed, site } : { q: typed });
    const answer = await fetch(origin + "/api/v1/instant?" + params, { signal, credentials: "omit", referrerPolicy: "no-referrer" });
    return answer.ok ? answer.json() : {};
  }, (page) => (/^https?:/i.test(page.url) ? page.url : ""), () => form.requestSubmit());
}
