// What makes the console quicker: numbers that move while a page is open.
{
  const place = document.querySelector("[data-stream]");
  if (place && window.EventSource) {
    for (const each of document.querySelectorAll(".unscripted")) each.hidden = true;
    let stream = null;
    const show = (event) => {
      const numbers = JSON.parse(event.data);
      for (const each of document.querySelectorAll("[data-live]")) {
        const text = numbers[each.dataset.live];
        if (text !== undefined && each.textContent !== text) each.textContent = text;
      }
    };
    const open = () => {
      if (stream || document.hidden) return;
      stream = new EventSource(place.dataset.stream);
      stream.onmessage = show;
      // A user who was signed out meanwhile is not asked again.
      stream.onerror = () => { if (stream && stream.readyState === EventSource.CLOSED) stream = null; };
    };
    const close = () => { stream?.close(); stream = null; };
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    addEventListener("pagehide", close);
    addEventListener("pageshow", open);
    open();
  }
}
