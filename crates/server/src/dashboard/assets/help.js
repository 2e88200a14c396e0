// The dialog with the keys of the page.

import { VIEWS } from './addresses.js';
import { open } from './dialogs.js';
import { h } from './dom.js';

const title = (word) => word[0].toUpperCase() + word.slice(1);

const KEYS = [
  ...VIEWS.map((view, index) => [[String(index + 1)], title(view)]),
  [['/'], 'Search'],
  [['Esc'], 'Clear the search, close a dialog'],
  [['Alt', '←'], 'Back'],
  [['+', '−'], 'Zoom the timeline'],
  [['←', '→'], 'Move the timeline'],
  [['0'], 'Timeline: back to now'],
  [['?'], 'This help'],
];

export function showHelp() {
  const rows = KEYS.flatMap(([keys, words]) => [
    h('dt', {}, ...keys.map((key) => h('kbd', {}, key))), h('dd', {}, words)]);
  open('Keys', h('div', {}, h('dl', { class: 'keys' }, ...rows),
    h('p', { class: 'rest' }, 'Every view, task, lock, worker and filter has an address: copy it from the address bar.')));
}
