// Formats numbers, times, names and event names.

const UNITS = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];

/** `7 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(seconds) {
  let left = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([, size]) => left >= size);
  if (first < 0) return '0 s';
  const [unit, size] = UNITS[first];
  const big = `${Math.floor(left / size)}\u202f${unit}`;
  left %= size;
  const next = UNITS[first + 1];
  const small = next && Math.floor(left / next[1]);
  return small ? `${big} ${small}\u202f${next[0]}` : big;
}

/** A duration in one unit, for narrow places. */
export const roughly = (seconds) => duration(seconds).split(' ')[0];

const clockFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hour12: false });

/** The time of day. */
export const clock = (ms) => clockFormat.format(ms);

const shortDayFormat = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

/** The day, such as `Nov 17`. */
export const day = (ms) => shortDayFormat.format(ms);

/** The day and the time of day. */
export const moment = (text) => dayFormat.format(Date.parse(text));

const exactFormat = new Intl.DateTimeFormat(undefined, {
  year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false, timeZoneName: 'short',
});

/** The exact time, for a tooltip: here, and as the server wrote it. */
export const exact = (text) => `${exactFormat.format(Date.parse(text))} (${text})`;

/** `1,204`. */
export const count = (number) => number.toLocaleString('en');

export const STATUS_WORDS = {
  pending: 'Pending', in_progress: 'In progress', review: 'Review', completed: 'Completed',
  failed: 'Failed', blocked: 'Blocked', cancelled: 'Cancelled', skipped: 'Skipped',
};

/** Each kind of event as a verb, with its colour. */
export const EVENT_WORDS = {
  acquired: ['acquired', 'start'], released: ['released', 'calm'], lapsed: ['lost its lease on', 'bad'],
  died: ['died holding', 'bad'], broken: ['was forced off', 'bad'], waiting: ['waits for', 'calm'],
  left: ['left the queue of', 'calm'], deadlock: ['was refused because of a deadlock on', 'bad'],
  added: ['added', 'calm'], updated: ['changed', 'calm'], deleted: ['deleted', 'calm'],
  noted: ['wrote a note on', 'calm'],
  completed: ['completed', 'good'], failed: ['failed', 'bad'],
  sent_to_review: ['sent to review', 'start'], approved: ['approved', 'good'],
  rejected: ['rejected', 'bad'], snoozed: ['snoozed', 'calm'], handed_back: ['released unfinished', 'calm'],
  cancelled: ['cancelled', 'calm'], skipped: ['skipped', 'calm'], retried: ['retried', 'start'],
  recovered: ['died or stopped renewing on', 'bad'], set_aside: ['was one of too many to die on', 'bad'],
  paused: ['paused', 'calm'], resumed: ['resumed', 'start'], rebooted: ['rebooted', 'calm'],
};

/** Cuts a long text. */
export function brief(text, most = 240) {
  const characters = [...String(text).slice(0, most * 2)];
  return characters.length > most || text.length > most * 2
    ? `${characters.slice(0, most).join('')}…` : String(text);
}

const HUES = 8;
const hues = new Map();

/** The colour of a name: the same everywhere on the page, and another one for the next new name. */
export function hue(name) {
  if (!hues.has(name)) hues.set(name, hues.size % HUES);
  return hues.get(name);
}
