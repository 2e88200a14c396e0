// The connection to the server: requests with the token, and the event stream, which reconnects automatically.

const TOKEN_KEY = 'tenure.token';
// The server sends something at least every 15 seconds; after this long without data the connection is lost.
const SILENCE_MS = 25_000;
const RETRY_FIRST_MS = 400;
const RETRY_MAX_MS = 10_000;

/** The server requires a token, or does not accept this one. */
export class SignInNeeded extends Error {}

export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (value) => sessionStorage.setItem(TOKEN_KEY, value),
  clear: () => sessionStorage.removeItem(TOKEN_KEY),
};

/**
 * Takes the token from an address such as `#token=…`, which `tenure serve` prints, and removes it from
 * the address bar and the history. Returns whether there was one.
 */
export function takeTokenFromAddress() {
  const found = /^#token=([\w.-]+)$/.exec(location.hash);
  if (!found) return false;
  token.set(found[1]);
  history.replaceState(null, '', `${location.pathname}${location.search}#/overview`);
  return true;
}

function headers(more = {}) {
  const held = token.get();
  return held ? { ...more, authorization: `Bearer ${held}` } : more;
}

/** Sends a request and returns the response, or throws its error. */
export async function ask(method, path, body) {
  const sent = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(path, {
    method, headers: headers(sent), body: body && JSON.stringify(body), cache: 'no-store',
  });
  if (response.status === 401) throw new SignInNeeded();
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  const said = [answer?.detail ?? `the server responded with status ${response.status}`, answer?.hint];
  throw new Error(said.filter(Boolean).join(' '));
}

/**
 * Follows the stream forever. Calls `on.message(name, value)` and `on.state(state, seconds)`, where the
 * state is connecting, live, waiting (for so many seconds) or sign-in, which waits for `retryNow`.
 */
export class Stream {
  constructor(on) {
    this.on = on;
    this.lastId = null;
    this.failures = 0;
  }

  start() {
    this.stopped = false;
    this.run();
  }

  /** Retries at once. */
  retryNow() {
    this.failures = 0;
    this.wake?.();
  }

  async run() {
    while (!this.stopped) {
      this.on.state(this.failures ? 'reconnecting' : 'connecting');
      try {
        await this.follow();
      } catch (error) {
        if (error instanceof SignInNeeded) {
          this.on.state('sign-in');
          await this.pause(2 ** 31 - 1);
          continue;
        }
      }
      this.failures += 1;
      const spread = 0.75 + Math.random() / 2;
      const wait = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (this.failures - 1)) * spread;
      this.on.state('waiting', wait / 1000);
      await this.pause(wait);
    }
  }

  pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => { clearTimeout(timer); resolve(); };
    });
  }

  async follow() {
    const abort = new AbortController();
    let watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      const came = this.lastId === null ? {} : { 'last-event-id': this.lastId };
      const response = await fetch('/v1/stream', {
        headers: headers({ accept: 'text/event-stream', ...came }),
        cache: 'no-store', signal: abort.signal,
      });
      if (response.status === 401) throw new SignInNeeded();
      if (!response.ok) throw new Error(`the server responded with status ${response.status}`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parse = parser((message) => this.take(message));
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
        parse(value);
      }
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
  }

  take({ name, data, id }) {
    const value = JSON.parse(data);
    // The stream begins with a snapshot, followed by all later changes.
    this.lastId = id || (this.lastId ?? String(value.revision));
    this.failures = 0;
    this.on.state('live');
    this.on.message(name, value);
  }
}

/** Parses server-sent events from chunks of text that may end anywhere. */
export function parser(tell) {
  let rest = '';
  let message = { name: 'message', data: [], id: '' };
  const line = (text) => {
    if (text === '') {
      if (message.data.length) tell({ ...message, data: message.data.join('\n') });
      message = { name: 'message', data: [], id: '' };
      return;
    }
    const colon = text.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') message.name = value;
    else if (field === 'data') message.data.push(value);
    else if (field === 'id') message.id = value;
  };
  return (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    lines.forEach((text) => line(text.replace(/\r$/, '')));
  };
}
