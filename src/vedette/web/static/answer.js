// The answer box: loaded after the results, so that they never wait for it.
{
  const box = document.getElementById("answer");
  const show = async () => {
    const message = box.querySelector("p");
    message.textContent = "Writing an answer…";
    let text = "";
    try {
      const answer = await fetch(box.dataset.source);
      if (answer.headers.get("content-type")?.startsWith("text/html")) text = await answer.text();
    } catch {
      // The message below says so.
    }
    // The server has escaped everything that is not its own; the policy of the page lets no script in it run.
    const part = new DOMParser().parseFromString(text, "text/html").querySelector(".answer-text");
    if (part) message.replaceWith(part);
    else message.textContent = "There is no answer right now. The results are not affected.";
  };
  if (box) show();
}
