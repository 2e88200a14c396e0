// What the command of an attempt printed, live while it runs.

import { ask } from './connection.js';
import { h, say } from './dom.js';
import { duration, exact } from './words.js';

const POLL_MS = 1_500;

export class Output {
  constructor() {
    this.state = h('span', { class: 'count' });
    this.text = h('pre', { class: 'block output', tabindex: 0, dir: 'auto', 'aria-label': 'Output' });
    this.element = h('div', {}, this.state, this.text);
  }

  /** Shows the output of an attempt, and follows it while it runs. */
  follow(id, attempt) {
    this.stop();
    this.wanted = { id, attempt };
    say(this.text, '');
    say(this.state, 'Loading…');
    this.load(this.wanted);
  }

  stop() {
    clearTimeout(this.timer);
    this.wanted = null;
  }

  async load(wanted) {
    const path = `/v1/tasks/${encodeURIComponent(wanted.id)}/log?attempt=${wanted.attempt}`;
    const log = await ask('GET', path).catch(() => null);
    if (this.wanted !== wanted) return;
    if (!log) say(this.state, 'The output cannot be loaded.');
    else this.show(log);
    if (log?.running && this.element.isConnected) this.timer = setTimeout(() => this.load(wanted), POLL_MS);
  }

  show(log) {
    const isAtEnd = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 4;
    say(this.text, log.text);
    this.text.hidden = log.text === '';
    const age = log.updated_at ? duration((Date.now() - Date.parse(log.updated_at)) / 1000) : '';
    this.state.title = log.updated_at ? `Last output ${exact(log.updated_at)}` : '';
    say(this.state, log.text === '' ? 'It printed nothing.' : `${log.running ? `Running; last output ${age} ago` : 'Ended'}${log.truncated ? '; earlier lines were dropped' : ''}`);
    // Follows the end unless the reader scrolled up.
    if (isAtEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
