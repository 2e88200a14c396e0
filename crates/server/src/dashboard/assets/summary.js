// The totals at the top of the page.

import { fill, h } from './dom.js';
import { STATUS_WORDS, count } from './words.js';

const SHOWN = ['completed', 'review', 'in_progress', 'pending', 'failed', 'blocked'];

function tile(number, word, kind = '') {
  return h('div', { class: `tile ${kind}` }, h('b', {}, count(number)), h('span', {}, word));
}

export function showSummary(element, model) {
  const { counts, sections, paused: isAllPaused } = model.snapshot;
  const totals = model.tallies();
  const all = Object.values(totals).reduce((sum, number) => sum + number, 0);
  const paused = sections.filter((section) => section.paused).length;
  fill(element,
    h('div', { class: 'tiles' },
      tile(counts.held, 'held'),
      tile(counts.waiting, 'waiting', counts.waiting ? 'warm' : ''),
      tile(counts.workers, counts.workers === 1 ? 'worker' : 'workers'),
      counts.lapsed > 0 && tile(counts.lapsed, 'lapsed', 'hot'),
      counts.dead > 0 && tile(counts.dead, 'dead', 'hot'),
      isAllPaused && h('div', { class: 'tile warm' }, h('b', {}, 'Paused'), h('span', {}, 'no task can be claimed')),
      paused > 0 && !isAllPaused && tile(paused, paused === 1 ? 'section paused' : 'sections paused', 'warm')),
    h('div', { class: 'progress' }, progressBar(totals, all), legend(totals, all)));
}

function progressBar(totals, all) {
  const parts = SHOWN.filter((status) => totals[status]);
  const words = parts.map((status) => `${totals[status]} ${STATUS_WORDS[status].toLowerCase()}`).join(', ');
  const bar = h('div', { class: 'stack', role: 'img', 'aria-label': all ? `Tasks: ${words}` : 'No tasks' });
  for (const status of parts) {
    const part = h('i', { class: `status-${status}` });
    part.style.flexGrow = totals[status];
    bar.append(part);
  }
  return bar;
}

function legend(totals, all) {
  if (!all) return h('p', { class: 'legend' }, 'No tasks yet');
  const done = (totals.completed ?? 0) + (totals.skipped ?? 0) + (totals.cancelled ?? 0);
  const entries = SHOWN.filter((status) => totals[status]).map((status) => h('span', {},
    h('i', { class: `dot status-${status}` }), h('b', {}, count(totals[status])), ` ${STATUS_WORDS[status].toLowerCase()}`));
  return h('p', { class: 'legend' }, ...entries,
    h('span', { class: 'share' }, `${Math.floor((100 * done) / all)}% of ${count(all)} tasks`));
}
