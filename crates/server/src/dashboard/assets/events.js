// The event list, newest first.

import { empty, foreign, h, reconcile, say } from './dom.js';
import { EVENT_WORDS, brief, clock, count, hue } from './words.js';

const SHOWN = 300;
const SHOWN_SMALL = 14;

export class Events {
  constructor(model, isSmall) {
    this.model = model;
    this.isSmall = isSmall;
    this.limit = isSmall ? SHOWN_SMALL : SHOWN;
    this.count = h('span', { class: 'count' });
    this.list = h('ol', { class: 'events' });
    this.more = h('button', { type: 'button', class: 'more', hidden: true, onclick: () => { this.limit += SHOWN; this.show(this.search); } });
    this.nothing = h('div', { hidden: true }, empty('No events yet', 'The same in a terminal:', 'tenure events --follow'));
    const id = isSmall ? 'events-small' : 'events-all';
    this.element = h('section', { class: 'panel', 'aria-labelledby': id },
      h('div', { class: 'panel-head' }, h('h2', { id }, isSmall ? 'Recent events' : 'Events'), !isSmall && this.count),
      this.list, this.more, this.nothing);
  }

  show(search = '') {
    this.search = search;
    const all = this.model.events;
    const shown = [];
    let found = 0;
    for (let i = all.length - 1; i >= 0; i -= 1) {
      if (search && !admits(all[i], search)) continue;
      found += 1;
      if (shown.length < this.limit) shown.push(all[i]);
      else if (!search || this.isSmall) break;
    }
    const total = search ? found : all.length;
    say(this.count, search ? `${count(found)} of ${count(all.length)}` : count(all.length));
    reconcile(this.list, shown, (event) => event.revision, create, () => {});
    this.more.hidden = this.isSmall || total <= shown.length;
    say(this.more, `Show more (${count(total - shown.length)})`);
    this.nothing.hidden = all.length > 0;
  }

  tick() {}
}

function admits(event, search) {
  const words = [event.event, event.resource ?? '', event.holder, event.operation ?? '', event.reason ?? '', event.by ?? ''];
  return words.join('\n').toLowerCase().includes(search);
}

function create(event) {
  const [verb, kind] = EVENT_WORDS[event.event] ?? [event.event, 'calm'];
  return h('li', { class: `event ${kind}`, 'data-event': event.event },
    h('time', { datetime: event.at }, clock(event.time)),
    h('i', { class: `dot hue-${hue(event.holder)}` }),
    h('p', {}, foreign(brief(event.holder, 60), { class: 'holder' }), h('span', { class: 'verb' }, ` ${verb} `),
      event.resource && foreign(brief(event.resource, 100), { class: 'resource' }),
      ...details(event)));
}

function details(event) {
  const said = [];
  if (event.operation && !event.resource?.startsWith('task:')) said.push(' for ', foreign(brief(event.operation, 160), { class: 'quote' }));
  else if (event.operation) said.push(' ', foreign(brief(event.operation, 160), { class: 'quote' }));
  if (event.event === 'broken') said.push(', broken by ', foreign(brief(event.by ?? '', 80), { class: 'holder' }));
  if (event.reason) said.push(': ', foreign(brief(event.reason, 300), { class: 'quote' }));
  if (event.why) said.push(`: ${event.why}`);
  if (event.text) said.push(': ', foreign(brief(event.text, 300), { class: 'quote' }));
  if (event.feedback) said.push(': ', foreign(brief(event.feedback, 300), { class: 'quote' }));
  if (event.event === 'failed') said.push(event.retry ? ' (will be retried)' : ' (will not be retried)');
  if (event.token) said.push(h('span', { class: 'token' }, ` #${event.token}`));
  return said;
}
