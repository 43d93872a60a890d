// Tells the server that results were seen, and which were opened. It never delays or changes where a link leads.
{
  const list = document.querySelector("ol[data-slate]");
  const tell = (kind, page) => {
    const body = JSON.stringify({ slate: list.dataset.slate, kind, page });
    navigator.sendBeacon?.("/api/v1/events", body); // sent even while the page goes away
  };
  const see = () => {
    if (document.visibilityState !== "visible") return; // opened in the background, or rendered ahead
    document.removeEventListener("visibilitychange", see);
    tell("view", 0);
  };
  const open = (event) => {
    const link = event.target.closest?.("a[data-page]");
    if (link && event.button < 2) tell("click", Number(link.dataset.page)); // a right click opens a menu only
  };
  if (list) {
    document.addEventListener("visibilitychange", see);
    see();
    list.addEventListener("click", open); // keys that open a link come as a click too
    list.addEventListener("auxclick", open);
  }
}
