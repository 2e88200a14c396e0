// The events view, and the newest events in the overview.

import { changeFilter } from './addresses.js';
import { empty, fill, h, say } from './dom.js';
import { EventList } from './event-list.js';
import { EVENT_WORDS, count } from './words.js';

const SHOWN = 300;
const SHOWN_SMALL = 14;

export class Events {
  constructor(model, isSmall) {
    this.model = model;
    this.isSmall = isSmall;
    this.count = h('span', { class: 'count' });
    this.nothing = h('div', {});
    this.events = new EventList(model, { first: isSmall ? SHOWN_SMALL : SHOWN, isWhole: !isSmall, nothing: this.nothing });
    this.list = this.events.list;
    const id = isSmall ? 'events-small' : 'events-all';
    this.element = h('section', { class: 'panel', 'aria-labelledby': id },
      h('div', { class: 'panel-head' }, h('h2', { id }, isSmall ? 'Recent events' : 'Events'), !isSmall && this.count,
        !isSmall && this.filters()),
      this.events.element);
  }

  filters() {
    const option = (value, words) => h('option', { value }, words);
    this.kind = h('select', { 'aria-label': 'Kind of event', onchange: () => changeFilter({ kind: this.kind.value }) },
      option('', 'All kinds'), ...Object.keys(EVENT_WORDS).map((kind) => option(kind, kind.replaceAll('_', ' '))));
    this.by = h('input', { 'aria-label': 'Worker or holder', placeholder: 'Worker', list: 'known-workers', spellcheck: false, onchange: () => changeFilter({ by: this.by.value.trim() }) });
    this.resource = h('input', { 'aria-label': 'Resource', placeholder: 'Resource', spellcheck: false, onchange: () => changeFilter({ resource: this.resource.value.trim() }) });
    return h('div', { class: 'filters' }, this.kind, this.by, this.resource);
  }

  show(search = '', filter = {}) {
    const { kind = '', by = '', resource = '' } = this.isSmall ? {} : filter;
    if (!this.isSmall) {
      this.kind.value = kind;
      for (const [field, value] of [[this.by, by], [this.resource, resource]]) {
        if (document.activeElement !== field) field.value = value;
      }
    }
    this.events.setFilter({ q: search, ...(kind && { kinds: [kind] }), ...(by && { by }), ...(resource && { resource: written(resource) }) });
    this.events.show();
    const all = this.model.events.length;
    const isNarrow = search || kind || by || resource;
    say(this.count, isNarrow ? `${count(this.events.found)} found` : count(all));
    this.showNothing(all === 0 && !isNarrow ? 'empty' : 'filtered');
  }

  showNothing(state) {
    if (this.nothing.dataset.state === state) return;
    this.nothing.dataset.state = state;
    fill(this.nothing, state === 'empty'
      ? empty('No events yet', 'The same in a terminal:', 'tenure events --follow')
      : empty('Nothing matches', 'Clear the search or choose other conditions.'));
  }

  tick() {}
}

/** A lock may be written without its kind, and is shown so in events. */
const written = (resource) => resource.replace(/^lock:/, '');
