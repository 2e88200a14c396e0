// Converts events to spans for the timeline: holder, resource, start, end, and how it ended.

const ENDS = {
  released: 'released', lapsed: 'lapsed', died: 'died', broken: 'broken', completed: 'released',
  failed: 'failed', sent_to_review: 'released', snoozed: 'released', handed_back: 'released',
  recovered: 'died', set_aside: 'died', cancelled: 'broken',
};
const TAKEN_FROM = new Set(['lapsed', 'died', 'broken']);

/**
 * All spans that end after `since`, oldest first. Present holds come from `locks`, past ones from the
 * events.
 */
export function spans(events, locks, since, now) {
  const open = new Map();
  const lastEnd = new Map();
  const found = [];
  for (const event of events) {
    if (!event.resource) continue;
    if (event.event === 'acquired') {
      const key = `${event.resource}\n${event.token}`;
      const takeover = lastEnd.get(event.resource);
      lastEnd.delete(event.resource);
      open.set(key, { key, resource: event.resource, holder: event.holder, token: event.token, operation: event.operation, start: event.time, end: null, how: null, takeover });
      continue;
    }
    const how = ENDS[event.event];
    if (!how) continue;
    for (const span of ended(open, event)) {
      open.delete(span.key);
      // A lapsed lease is removed later than it ended.
      const end = event.ended_at ? Date.parse(event.ended_at) : event.time;
      Object.assign(span, { end, how, by: event.by, reason: event.reason });
      if (TAKEN_FROM.has(how)) lastEnd.set(event.resource, { holder: span.holder, how, time: event.time });
      if (span.end >= since) found.push(span);
    }
  }
  for (const lock of locks) {
    const key = `${lock.resource}\n${lock.token}`;
    const span = open.get(key) ?? {
      key, resource: lock.resource, holder: lock.holder, token: lock.token, operation: lock.operation,
      start: Date.parse(lock.acquired_at), end: null, how: null,
    };
    found.push(Object.assign(span, endOf(lock, now)));
  }
  return found.sort((one, other) => one.start - other.start);
}

/**
 * The end of a hold that is no longer valid but not yet replaced. The time of death is unknown; in any
 * case the lease excludes no one after its end.
 */
function endOf(lock, now) {
  if (lock.state === 'held') return { end: null, how: null };
  const expired = Date.parse(lock.expires_at);
  if (lock.state === 'dead') return { end: Math.min(expired, now), how: 'died' };
  // The page knows the server's time to a second or two; a clock that was set back must not draw into the future.
  return { end: Math.min(expired, now + 5_000), how: 'lapsed' };
}

/** The spans that an event ends: the one with its token; for a task, any. */
function ended(open, event) {
  if (event.token !== null && event.token !== undefined) {
    const span = open.get(`${event.resource}\n${event.token}`);
    return span ? [span] : [];
  }
  if (!event.resource.startsWith('task:')) return [];
  return [...open.values()].filter((span) => span.resource === event.resource);
}

/** Distributes spans that overlap in time over several lanes. */
export function lanes(list) {
  const ends = [];
  for (const span of list) {
    const free = ends.findIndex((end) => end <= span.start);
    span.lane = free < 0 ? ends.length : free;
    ends[span.lane] = span.end ?? Infinity;
  }
  return Math.max(1, ends.length);
}
