// The entry point of the page: views, keys, connection state, sign-in.

import { VIEWS, changeFilter, current, format, go } from './addresses.js';
import { Stream, takeTokenFromAddress, token } from './connection.js';
import { fill, h, mark, reconcile, say } from './dom.js';
import { Events } from './events.js';
import { showHelp } from './help.js';
import { LockPage } from './lock.js';
import { Locks } from './locks.js';
import { Model } from './model.js';
import { Rates } from './rates.js';
import { showSummary } from './summary.js';
import { TaskPage } from './task.js';
import { Tasks } from './tasks.js';
import { Timeline } from './timeline.js';
import { duration } from './words.js';
import { WorkerPage } from './worker.js';
import { Workers } from './workers.js';

const THEME_KEY = 'tenure.theme';
const byId = (id) => document.getElementById(id);

const model = new Model(() => changed());
const parts = {
  overview: [new Locks(model), new Timeline(model, true), new Workers(model, true), new Events(model, true)],
  tasks: [new Tasks(model)],
  timeline: [new Timeline(model, false)],
  workers: [new Workers(model, false)],
  events: [new Events(model, false)],
  rates: [new Rates(model)],
  task: [new TaskPage(model)],
  lock: [new LockPage(model)],
  worker: [new WorkerPage(model)],
};
/** The tab under which the page of a thing belongs. */
const TAB_OF = { task: 'tasks', lock: 'overview', worker: 'workers' };
let address = current();
let connection = { state: 'connecting' };

/** Draws all changes since the last frame at once. */
let isScheduled = false;
function changed() {
  if (isScheduled) return;
  isScheduled = true;
  const show = () => { isScheduled = false; draw(); };
  // A hidden page gets no frames, but its title is still updated.
  if (document.hidden) setTimeout(show, 1_000);
  else requestAnimationFrame(show);
}

function draw() {
  if (!model.snapshot || connection.state === 'sign-in') return;
  byId('sign-in').hidden = true;
  byId('board').hidden = false;
  showFacts();
  showSummary(byId('summary'), model);
  const search = (address.filter.q ?? '').trim().toLowerCase();
  for (const part of parts[address.view]) part.show(search, address.filter, address.id);
  model.touched.clear();
  const labels = [...new Set(model.snapshot.workers.slice(0, 200).map((worker) => worker.holder))];
  reconcile(byId('known-workers'), labels, (label) => label, (label) => h('option', { value: label }), () => {});
}

function showFacts() {
  const { store, health, counts, role } = model.snapshot;
  say(byId('store'), store.engine);
  fill(byId('facts'),
    h('span', { class: 'role', title: 'Your role' }, role),
    h('span', {}, `v${health.version}`),
    h('span', { id: 'uptime' }, `up ${duration(health.uptime_seconds + model.sinceSnapshot())}`));
  if (address.id === null) document.title = counts.held ? `(${counts.held}) tenure` : 'tenure';
  showConnection();
}

function showConnection() {
  const pill = byId('connection');
  const isTrouble = connection.state === 'live' && model.snapshot && !model.snapshot.health.ok;
  const state = isTrouble ? 'trouble' : connection.state;
  const words = {
    connecting: 'Connecting', live: 'Live', reconnecting: 'Reconnecting', trouble: 'Store unavailable',
    waiting: 'Reconnecting', 'sign-in': 'Signed out',
  };
  mark(pill, 'data-state', state);
  say(pill.lastChild, words[state]);
  const isAway = state === 'reconnecting' || state === 'waiting';
  document.body.classList.toggle('away', isAway || isTrouble);
  const banner = byId('banner');
  banner.hidden = !(isTrouble || (isAway && model.snapshot));
  if (isTrouble) say(banner, `The server cannot read its store: ${model.snapshot.health.problem ?? 'no reason given'}`);
  else if (isAway) say(banner, `The server does not respond. This data is ${duration(model.sinceSnapshot())} old; the page reconnects automatically.`);
}

// Views

/** Shows what the address names. */
function follow() {
  if (takeTokenFromAddress()) stream.retryNow();
  const before = address;
  address = current();
  // An address without a view, or of an older version, becomes the usual one.
  if (location.hash && location.hash !== format(address)) history.replaceState(null, '', format(address));
  if (before.view !== address.view || before.id !== address.id) {
    for (const part of parts[before.view]) part.leave?.();
    for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
    scrollTo(0, 0);
  }
  for (const name of Object.keys(parts)) byId(`view-${name}`).hidden = name !== address.view;
  const tab = TAB_OF[address.view] ?? address.view;
  for (const name of VIEWS) mark(byId(`tab-${name}`), 'aria-current', name === tab ? 'page' : null);
  // On a phone the tabs may be wider than the screen.
  const { parentElement: tabs, offsetLeft, offsetWidth } = byId(`tab-${tab}`);
  tabs.scrollLeft = offsetLeft - (tabs.clientWidth - offsetWidth) / 2;
  const search = byId('search');
  if (document.activeElement !== search) search.value = address.filter.q ?? '';
  search.closest('.search').hidden = address.id !== null || address.view === 'rates';
  changed();
}

function setUpViews() {
  const [locks, timeline, workers, events] = parts.overview;
  fill(byId('view-overview'), locks.element,
    h('div', { class: 'main' }, timeline.element, events.element), workers.element);
  for (const name of Object.keys(parts).slice(1)) fill(byId(`view-${name}`), ...parts[name].map((part) => part.element));
  addEventListener('hashchange', follow);
  follow();
  byId('search').addEventListener('input', () => changeFilter({ q: byId('search').value }, { isTyping: true }));
  byId('help').addEventListener('click', showHelp);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const search = byId('search');
  if (event.key === 'Escape' && document.activeElement === search) {
    search.value = '';
    changeFilter({ q: '' }, { isTyping: true });
    search.blur();
  }
  if (event.target.matches('input, textarea, select')) return;
  if (event.key === '/') {
    event.preventDefault();
    if (address.id !== null) go({ view: TAB_OF[address.view] });
    search.focus();
  } else if (event.key === '?') {
    showHelp();
  } else if (event.key >= '1' && event.key <= String(VIEWS.length)) {
    const name = VIEWS[Number(event.key) - 1];
    go({ view: name });
    byId(`tab-${name}`).focus();
  } else {
    for (const part of parts[address.view]) part.onKey?.(event);
  }
}

// Light and dark

function setUpTheme() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);
  const button = byId('theme');
  const show = () => say(button, isDark() ? '☀' : '☾');
  const kept = localStorage.getItem(THEME_KEY);
  if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    localStorage.setItem(THEME_KEY, root.dataset.theme);
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  show();
}

// Connection and sign-in

const stream = new Stream({
  message: (name, value) => model.take(name, value),
  state: (state, seconds) => {
    if (state === 'sign-in') askForToken();
    connection = { state, seconds };
    byId('sign-out').hidden = !token.get() || state === 'sign-in';
    showConnection();
  },
});

function askForToken() {
  const wasWrong = token.get() !== null;
  token.clear();
  byId('board').hidden = true;
  byId('sign-in').hidden = false;
  say(byId('sign-in-error'), wasWrong ? 'The server does not accept this token.' : '');
  byId('token').focus();
}

function setUpSignIn() {
  byId('sign-in').addEventListener('submit', (event) => {
    event.preventDefault();
    const typed = byId('token').value.trim();
    if (!typed) return;
    token.set(typed);
    byId('token').value = '';
    stream.retryNow();
  });
  byId('sign-out').addEventListener('click', () => {
    token.clear();
    location.reload();
  });
}

setUpTheme();
setUpViews();
setUpSignIn();
addEventListener('keydown', onKey);
addEventListener('online', () => stream.retryNow());
document.addEventListener('visibilitychange', () => changed());
setInterval(() => {
  if (!model.snapshot) return;
  showConnection();
  const uptime = byId('uptime');
  if (uptime) say(uptime, `up ${duration(model.snapshot.health.uptime_seconds + model.sinceSnapshot())}`);
  if (document.hidden) return;
  for (const part of parts[address.view]) (part.tick ?? part.draw).call(part);
}, 500);
stream.start();
