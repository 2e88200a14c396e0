// Which tasks are shown: the conditions in the address, as the server understands them, and the same
// judgement for tasks that arrive with the stream.

const AGES = { '10min': 600, '1h': 3_600, '1d': 86_400, '7d': 604_800 };

export const AGE_CHOICES = [
  ['', 'Any age'],
  ['under-10min', 'Under 10 minutes'], ['under-1h', 'Under an hour'], ['under-1d', 'Under a day'],
  ['over-10min', 'Over 10 minutes'], ['over-1h', 'Over an hour'], ['over-1d', 'Over a day'], ['over-7d', 'Over a week'],
];

/** The section filter for tasks without a section. A section cannot have this name: it begins with a space. */
export const NO_SECTION = ' none';

/** The names of the conditions. */
export const CONDITIONS = ['status', 'section', 'label', 'worker', 'age', 'q'];

export const hasConditions = (filter) => CONDITIONS.some((name) => filter[name]);

/** The time that an age condition compares with, in milliseconds; null without one. */
function ageLimit(age, now) {
  const [, side, length] = /^(under|over)-(.+)$/.exec(age ?? '') ?? [];
  return AGES[length] ? { side, time: now - AGES[length] * 1000 } : null;
}

/** The conditions as parameters of `GET /v1/tasks`. */
export function parameters(filter, now) {
  const asked = new URLSearchParams();
  if (filter.status) asked.set('status', filter.status);
  if (filter.section === NO_SECTION) asked.set('no_section', 'true');
  else if (filter.section) asked.set('section', filter.section);
  if (filter.label) asked.set('label', filter.label);
  if (filter.worker) asked.set('worker', filter.worker);
  if (filter.q) asked.set('search', filter.q.slice(0, 200));
  const limit = ageLimit(filter.age, now);
  if (limit) asked.set(limit.side === 'under' ? 'added_after' : 'added_before', new Date(limit.time).toISOString());
  return asked;
}

/** Whether a task meets the conditions. */
export function admits(task, filter, now) {
  if (filter.status && task.status !== filter.status) return false;
  if (filter.section && (filter.section === NO_SECTION ? task.section : task.section !== filter.section)) return false;
  if (filter.label && !task.labels.includes(filter.label)) return false;
  if (filter.worker && task.claimed_by !== filter.worker && task.finished_by !== filter.worker) return false;
  if (filter.q && !task.haystack.includes(filter.q.toLowerCase())) return false;
  const limit = ageLimit(filter.age, now);
  return !limit || (limit.side === 'under') === (task.createdAt >= limit.time);
}
