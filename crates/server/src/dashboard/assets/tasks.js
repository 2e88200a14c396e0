// The tasks view: sections, conditions, and the tasks as a board or as a list.

import { changeFilter, format } from './addresses.js';
import { pauseButton } from './actions.js';
import { Board } from './board.js';
import { empty, fill, foreign, h, mark, reconcile } from './dom.js';
import { AGE_CHOICES, CONDITIONS, NO_SECTION, hasConditions } from './task-filter.js';
import { TaskList } from './task-list.js';
import { STATUS_WORDS, brief, count } from './words.js';

export class Tasks {
  constructor(model) {
    this.model = model;
    this.sections = h('div', { class: 'sections', role: 'group', 'aria-label': 'Sections' });
    this.board = new Board(model);
    this.list = new TaskList(model);
    this.nothing = h('div', { class: 'panel', hidden: true });
    this.element = h('section', { 'aria-label': 'Tasks' }, this.sections, this.filterBar(), this.board.element, this.list.element, this.nothing);
  }

  filterBar() {
    const option = ([value, words]) => h('option', { value }, words);
    const select = (label, name, choices) => h('select', { 'aria-label': label, onchange: (event) => changeFilter({ [name]: event.target.value }) }, ...choices.map(option));
    const field = (label, name, list) => h('input', { 'aria-label': label, placeholder: label, list, spellcheck: false, autocomplete: 'off', onchange: (event) => changeFilter({ [name]: event.target.value.trim() }) });
    this.fields = {
      status: select('Status', 'status', [['', 'Any status'], ...Object.entries(STATUS_WORDS)]),
      label: field('Label', 'label', 'known-labels'),
      worker: field('Worker', 'worker', 'known-workers'),
      age: select('Age', 'age', AGE_CHOICES),
    };
    this.labels = h('datalist', { id: 'known-labels' });
    this.clear = h('button', { type: 'button', class: 'small', onclick: () => changeFilter(Object.fromEntries(CONDITIONS.map((name) => [name, '']))) }, 'Clear filters');
    const layout = (as, words) => h('button', { type: 'button', 'data-as': as, onclick: () => changeFilter({ as }) }, words);
    this.layouts = h('div', { class: 'choices', role: 'group', 'aria-label': 'Layout' }, layout('', 'Board'), layout('list', 'List'));
    return h('div', { class: 'filters', role: 'group', 'aria-label': 'Filters' }, ...Object.values(this.fields), this.labels, this.clear, this.layouts);
  }

  show(search = '', filter = {}) {
    this.showSections(filter);
    this.showFilters(filter);
    const isList = filter.as === 'list';
    const conditions = Object.fromEntries(CONDITIONS.map((name) => [name, filter[name] ?? '']));
    this.board.setFilter(isList ? null : conditions);
    this.list.setFilter(isList ? conditions : null);
    const part = isList ? this.list : this.board;
    // Hidden before it is measured, or the other way round, a list would not know its height.
    this.board.element.hidden = isList;
    this.list.element.hidden = !isList;
    const found = part.show();
    const queries = isList ? [this.list.query] : this.board.columns.flatMap((column) => column.queries);
    const isEmpty = found === 0 && queries.every((query) => query.isComplete);
    const error = queries.find((query) => query.error)?.error;
    this.showNothing(!isEmpty ? '' : hasConditions(filter) ? 'filtered' : 'empty', error);
    part.element.hidden = isEmpty;
    part.tick();
  }

  /** Ends what this view follows while another one is shown. */
  leave() {
    this.board.setFilter(null);
    this.list.setFilter(null);
  }

  showNothing(state, error = '') {
    this.nothing.hidden = !state && !error;
    if (this.nothing.dataset.state === state + error) return;
    this.nothing.dataset.state = state + error;
    fill(this.nothing, error ? empty('Tasks cannot be loaded', error)
      : state === 'empty' ? empty('No tasks', 'Add some; each is claimed by one worker:', 'tenure tasks add \'Fix login\' --section backend')
        : state === 'filtered' && empty('Nothing matches', 'No task meets all conditions. Clear the search or the filters.'));
  }

  showFilters(filter) {
    for (const [name, field] of Object.entries(this.fields)) {
      if (document.activeElement !== field || field.tagName === 'SELECT') field.value = filter[name] ?? '';
      mark(field, 'data-set', Boolean(filter[name]));
    }
    this.clear.hidden = !hasConditions(filter);
    for (const button of this.layouts.children) mark(button, 'aria-pressed', (filter.as ?? '') === button.dataset.as ? 'true' : 'false');
    const labels = new Set();
    for (const query of this.model.queries) {
      for (const task of query.found.values()) {
        for (const label of task.labels) labels.add(label);
        if (labels.size >= 50) break;
      }
    }
    reconcile(this.labels, [...labels].sort(), (label) => label, (label) => h('option', { value: label }), () => {});
  }

  showSections(filter) {
    const { sections, tallies, paused } = this.model.snapshot;
    const hasNone = tallies.some((tally) => !tally.section);
    const known = [...sections].sort((one, other) => one.priority - other.priority || one.position - other.position || (one.name < other.name ? -1 : 1));
    const isPlain = known.length === 0 && !paused && !(this.model.isAdmin && tallies.length > 0);
    const entries = isPlain ? [] : [
      { key: '', name: 'All sections', paused },
      ...known.map((section) => ({ ...section, key: section.name })),
      ...(hasNone && known.length > 0 ? [{ key: NO_SECTION, name: 'No section' }] : [])];
    reconcile(this.sections, entries, (entry) => entry.key, () => h('div', { class: 'section' }, h('a', { class: 'section-name' })),
      (element, entry) => this.updateSection(element, entry, filter));
  }

  updateSection(element, entry, filter) {
    const isChosen = (filter.section ?? '') === entry.key;
    const choose = element.firstChild;
    mark(choose, 'href', format({ view: 'tasks', filter: { ...filter, section: entry.key } }));
    const text = JSON.stringify([entry, isChosen, this.model.role]);
    if (element.text === text) return;
    element.text = text;
    mark(choose, 'aria-current', isChosen ? 'true' : null);
    mark(element, 'data-paused', entry.paused);
    fill(choose, foreign(brief(entry.name, 40)), entry.open !== undefined && h('span', { class: 'count' }, count(entry.open)), entry.paused && h('span', { class: 'chip warm' }, 'paused'));
    element.replaceChildren(choose);
    if (!this.model.isAdmin || entry.key === NO_SECTION) return;
    element.append(pauseButton(entry.key === '' ? '*' : entry.name, entry.paused));
  }

  tick() { (this.list.element.hidden ? this.board : this.list).tick(); }
}
