// The entry point of the page: views, keys, connection state, sign-in.

import { Stream, takeTokenFromAddress, token } from './connection.js';
import { Board } from './board.js';
import { fill, h, mark, say } from './dom.js';
import { Events } from './events.js';
import { Locks } from './locks.js';
import { Model } from './model.js';
import { showSummary } from './summary.js';
import { Timeline } from './timeline.js';
import { duration } from './words.js';
import { Workers } from './workers.js';

const VIEWS = ['overview', 'tasks', 'timeline', 'workers', 'events'];
const THEME_KEY = 'tenure.theme';
const byId = (id) => document.getElementById(id);

const model = new Model((what) => changed(what));
const parts = {
  overview: [new Locks(model), new Timeline(model, true), new Workers(model, true), new Events(model, true)],
  tasks: [new Board(model)],
  timeline: [new Timeline(model, false)],
  workers: [new Workers(model, false)],
  events: [new Events(model, false)],
};
const [locks, timeline, workers, events] = parts.overview;
let view = 'overview';
let connection = { state: 'connecting' };

/** Draws all changes since the last frame at once. */
let isScheduled = false;
const news = new Set();
function changed(what) {
  news.add(what);
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
  const search = byId('search').value.trim().toLowerCase();
  for (const part of parts[view]) part.show(search);
  news.clear();
}

function showFacts() {
  const { store, health, counts, role } = model.snapshot;
  say(byId('store'), store.engine);
  fill(byId('facts'),
    h('span', { class: 'role', title: 'Your role' }, role),
    h('span', {}, `v${health.version}`),
    h('span', { id: 'uptime' }, `up ${duration(health.uptime_seconds + model.sinceSnapshot())}`));
  document.title = counts.held ? `(${counts.held}) tenure` : 'tenure';
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

function choose(name, isByKey = false) {
  view = name;
  for (const other of VIEWS) {
    const isChosen = other === name;
    const tab = byId(`tab-${other}`);
    mark(tab, 'aria-selected', isChosen ? 'true' : 'false');
    mark(tab, 'tabindex', isChosen ? null : -1);
    byId(`view-${other}`).hidden = !isChosen;
    if (isChosen && isByKey) tab.focus();
  }
  if (location.hash !== `#${name}`) history.replaceState(null, '', `#${name}`);
  changed('view');
}

function setUpViews() {
  fill(byId('view-overview'), locks.element,
    h('div', { class: 'main' }, timeline.element, events.element), workers.element);
  for (const name of VIEWS.slice(1)) fill(byId(`view-${name}`), ...parts[name].map((part) => part.element));
  for (const name of VIEWS) byId(`tab-${name}`).addEventListener('click', () => choose(name));
  const fromAddress = () => {
    if (takeTokenFromAddress()) stream.retryNow();
    if (VIEWS.includes(location.hash.slice(1))) choose(location.hash.slice(1));
  };
  addEventListener('hashchange', fromAddress);
  fromAddress();
  byId('search').addEventListener('input', () => changed('search'));
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const search = byId('search');
  if (event.key === 'Escape' && document.activeElement === search) {
    search.value = '';
    changed('search');
    search.blur();
  }
  if (event.target.matches('input, textarea')) return;
  if (event.key === '/') {
    event.preventDefault();
    search.focus();
  } else if (event.key >= '1' && event.key <= String(VIEWS.length)) {
    choose(VIEWS[Number(event.key) - 1], true);
  } else if (event.target.matches('[role=tab]')) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) choose(VIEWS[(VIEWS.indexOf(view) + step + VIEWS.length) % VIEWS.length], true);
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
document.addEventListener('visibilitychange', () => changed('view'));
setInterval(() => {
  if (!model.snapshot) return;
  showConnection();
  const uptime = byId('uptime');
  if (uptime) say(uptime, `up ${duration(model.snapshot.health.uptime_seconds + model.sinceSnapshot())}`);
  if (document.hidden) return;
  for (const part of parts[view]) (part.tick ?? part.draw).call(part);
}, 500);
stream.start();
