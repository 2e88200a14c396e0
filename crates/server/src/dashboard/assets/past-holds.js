// The past holds of a resource or of a holder: who held what, when, how long, and how it ended.

import { toResource, toWorker } from './addresses.js';
import { foreign, h, nameLink, reconcile, when } from './dom.js';
import { spans } from './spans.js';
import { brief, duration, hue } from './words.js';

const SHOWN = 50;

/** Shows the holds that these events tell of, newest first; `subject` is what each row names. */
export function showPastHolds(list, events, subject) {
  const past = spans(events, [], 0, 0).reverse().slice(0, SHOWN);
  reconcile(list, past, (span) => span.key, (span) => h('li', { class: 'attempt', 'data-outcome': span.how },
    h('span', { class: 'number' }, `#${span.token}`),
    subject === 'holder'
      ? h('span', { class: 'who' }, h('i', { class: `dot hue-${hue(span.holder)}` }), nameLink(toWorker(span.holder), brief(span.holder, 120)))
      : nameLink(toResource(span.resource), brief(span.resource, 160), { class: 'resource' }),
    h('span', { class: 'outcome' }, span.how),
    h('span', { class: 'since' }, duration((span.end - span.start) / 1000)),
    when(new Date(span.start).toISOString()),
    (span.operation || span.reason) && h('p', { class: 'attempt-more', dir: 'auto' }, foreign(brief([span.operation, span.reason].filter(Boolean).join('; '), 400)))), () => {});
  return past.length;
}
