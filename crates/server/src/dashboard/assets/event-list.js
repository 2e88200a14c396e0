// A list of events, newest first: those that the page knows, and older ones from the server on demand.

import { toResource, toWorker } from './addresses.js';
import { ask } from './connection.js';
import { foreign, h, nameLink, reconcile, say, when } from './dom.js';
import { EVENT_WORDS, brief, clock, count, hue } from './words.js';

const OLDER = 200;

/** The word of an event. */
export const kindOf = (event) => event.event ?? event.kind;

export class EventList {
  /** @param first How many are shown at first; @param isWhole whether older ones can be loaded. */
  constructor(model, { first, isWhole = true, nothing }) {
    this.model = model;
    this.first = first;
    this.limit = first;
    this.isWhole = isWhole;
    this.list = h('ol', { class: 'events' });
    this.more = h('button', { type: 'button', class: 'more', hidden: true, onclick: () => this.showMore() });
    this.nothing = h('div', { hidden: true }, nothing);
    this.element = h('div', {}, this.list, this.more, this.nothing);
    this.setFilter({});
  }

  /** Only events of a `resource`, `by` a worker or operator, of these `kinds`, with the text `q`. */
  setFilter(filter) {
    const text = JSON.stringify(filter);
    if (text === this.text) return;
    this.text = text;
    this.filter = filter;
    this.limit = this.first;
    this.older = [];
    this.hasAll = false;
    const isNarrow = filter.resource || filter.by || filter.kinds?.length;
    if (this.isWhole && isNarrow) this.loadOlder();
  }

  admits(event) {
    const { resource, by, kinds, q } = this.filter;
    if (resource && event.resource !== resource) return false;
    if (by && event.holder !== by && event.by !== by) return false;
    if (kinds?.length && !kinds.includes(kindOf(event))) return false;
    return !q || contains(event, q);
  }

  show() {
    const known = this.model.events;
    const shown = [];
    let found = 0;
    for (let i = known.length - 1; i >= 0; i -= 1) {
      if (!this.admits(known[i])) continue;
      found += 1;
      if (shown.length < this.limit) shown.push(known[i]);
    }
    const oldest = known[0]?.revision ?? Infinity;
    for (const event of this.older) {
      if (event.revision >= oldest || !this.admits(event)) continue;
      found += 1;
      if (shown.length < this.limit) shown.push(event);
    }
    this.found = found;
    reconcile(this.list, shown, (event) => event.revision, create, () => {});
    const hidden = found - shown.length;
    this.more.hidden = !this.isWhole || (hidden === 0 && (this.hasAll || found === 0));
    say(this.more, hidden > 0 ? `Show more (${count(hidden)})` : 'Load older events');
    this.nothing.hidden = found > 0 || Boolean(this.loading);
  }

  showMore() {
    if (this.found > this.limit) {
      this.limit += this.first;
      this.show();
    } else this.loadOlder();
  }

  /** Asks the server for what happened before the oldest known event that fits. */
  async loadOlder() {
    const { text } = this;
    const { resource, by, kinds } = this.filter;
    const asked = new URLSearchParams({ last: OLDER });
    if (resource) asked.set('resource', resource);
    if (by) asked.set('by', by);
    if (kinds?.length) asked.set('kind', kinds.join(','));
    const before = this.older.at(-1)?.revision ?? (resource || by || kinds?.length ? null : this.model.events[0]?.revision);
    if (before) asked.set('before', before);
    this.loading = true;
    try {
      const { events } = await ask('GET', `/v1/events?${asked}`);
      if (text !== this.text) return;
      for (const event of events) event.time = Date.parse(event.at);
      this.older.push(...events.reverse());
      this.hasAll = events.length < OLDER;
      this.limit = Math.max(this.limit, this.first);
    } catch {
      this.hasAll = true;
    } finally {
      this.loading = false;
    }
    this.show();
  }
}

function contains(event, text) {
  const words = [kindOf(event), event.resource ?? '', event.holder, event.operation ?? '', event.reason ?? '', event.by ?? '', event.actor ?? ''];
  return words.join('\n').toLowerCase().includes(text);
}

function create(event) {
  const [verb, kind] = EVENT_WORDS[kindOf(event)] ?? [kindOf(event), 'calm'];
  return h('li', { class: `event ${kind}`, 'data-event': kindOf(event) },
    when(event.at, clock(event.time)),
    h('i', { class: `dot hue-${hue(event.holder)}` }),
    h('p', {}, nameLink(toWorker(event.holder), brief(event.holder, 60), { class: 'holder' }), h('span', { class: 'verb' }, ` ${verb} `),
      event.resource && nameLink(toResource(event.resource), brief(event.resource, 100), { class: 'resource' }),
      ...details(event)));
}

function details(event) {
  const said = [];
  const kind = kindOf(event);
  if (event.operation && !event.resource?.startsWith('task:')) said.push(' for ', foreign(brief(event.operation, 160), { class: 'quote' }));
  else if (event.operation) said.push(' ', foreign(brief(event.operation, 160), { class: 'quote' }));
  if (kind === 'broken') said.push(', broken by ', foreign(brief(event.by ?? '', 80), { class: 'holder' }));
  if (event.reason) said.push(': ', foreign(brief(event.reason, 300), { class: 'quote' }));
  if (event.why) said.push(`: ${event.why}`);
  if (event.text) said.push(': ', foreign(brief(event.text, 300), { class: 'quote' }));
  if (event.feedback) said.push(': ', foreign(brief(event.feedback, 300), { class: 'quote' }));
  if (kind === 'failed') said.push(event.retry ? ' (will be retried)' : ' (will not be retried)');
  if (event.actor) said.push(h('span', { class: 'token' }, ' by token ', foreign(brief(event.actor, 60))));
  if (event.token) said.push(h('span', { class: 'token' }, ` #${event.token}`));
  return said;
}
