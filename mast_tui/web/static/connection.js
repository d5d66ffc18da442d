// Connects the page to its app, and connects again after a lost connection. textual.js, which runs
// after this script, uses the class below as its WebSocket.
{
  const Socket = window.WebSocket;
  const ENDED = 4000; // the server's code for an app that has ended
  const LONGEST_PAUSE = 1500; // milliseconds between two attempts to connect
  const PATIENCE = 8000; // milliseconds for an answer on a slow connection
  const PING_EVERY = 5000;
  const SILENCE = 12000; // milliseconds without any message: the connection is lost

  class AppSocket extends EventTarget {
    binaryType = "arraybuffer";

    constructor(address) {
      super();
      this.address = address;
      this.state = `/app/${document.getElementById("terminal").dataset.page}`;
      this.socket = null;
      this.ended = false;
      this.pause = 100;
      this.connect(address);
      setInterval(() => this.ping(), PING_EVERY);
      addEventListener("offline", () => this.lose());
      addEventListener("online", () => this.retry());
      document.addEventListener("visibilitychange", () => this.retry());
      // Without the code of an ordinary end the server would keep the app for a page that has gone.
      addEventListener("pagehide", () => this.leave());
      addEventListener("pageshow", (event) => event.persisted && location.reload());
    }

    send(data) {
      if (this.socket?.readyState === Socket.OPEN) this.socket.send(data);
    }

    connect(address) {
      const socket = new Socket(address);
      socket.binaryType = this.binaryType;
      this.socket = socket;
      const timer = setTimeout(() => socket.readyState === Socket.CONNECTING && this.lose(), PATIENCE);
      socket.addEventListener("open", () => {
        clearTimeout(timer);
        if (socket !== this.socket) return socket.close();
        this.heard = Date.now();
        this.pause = 100;
        document.body.classList.remove("-lost");
        this.dispatchEvent(new Event("open"));
      });
      socket.addEventListener("message", (event) => {
        if (socket !== this.socket) return;
        this.heard = Date.now();
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      socket.addEventListener("close", (event) => {
        clearTimeout(timer);
        if (socket !== this.socket) return;
        if (event.code === ENDED) this.end();
        else this.lose();
      });
    }

    ping() {
      if (this.socket?.readyState !== Socket.OPEN) return;
      if (Date.now() - this.heard > SILENCE) this.lose();
      else this.send(JSON.stringify(["ping", String(Date.now())]));
    }

    lose() {
      if (this.ended) return;
      this.socket = null; // closed by the server, which the next connection tells
      document.body.classList.add("-lost");
      this.retry();
    }

    // Each pause begins an attempt, also while an earlier one waits for a network without answers.
    retry() {
      if (this.ended || this.socket !== null) return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.retry(), this.pause);
      this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
      fetch(this.state, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) }).then(
        (answer) => {
          if (this.ended || this.socket !== null) return;
          if (answer.status === 404) this.end();
          else if (answer.status === 204) this.connect(`${this.address}&again=1`);
        },
        () => {}, // no network: the next attempt follows
      );
    }

    end() {
      this.ended = true;
      clearTimeout(this.timer);
      document.body.classList.remove("-lost");
      this.dispatchEvent(new Event("close"));
    }

    leave() {
      this.ended = true;
      this.socket?.close(1000);
    }
  }
  window.WebSocket = AppSocket;

  // More columns fit on a phone in a smaller type.
  if (innerWidth < 600) document.getElementById("terminal").dataset.fontSize = "12";
}
