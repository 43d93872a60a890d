// Browsers start no worker from a file, so search would not work in a site that is opened from disk.
// There, the worker's script runs in a hidden frame instead; over http nothing changes.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "search"
      document.body.appendChild(frame)
      this.inner = frame.contentWindow
      this.inner.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      const script = frame.contentDocument.createElement("script")
      script.src = url
      this.ready = new Promise(resolve => { script.onload = resolve })
      frame.contentDocument.body.appendChild(script)
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
  window.Worker = window.IFrameWorker
}
