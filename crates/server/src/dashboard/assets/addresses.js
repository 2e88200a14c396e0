// The address of everything that the page shows, in the fragment, which browsers do not send:
// `#/tasks?status=failed`, `#/task/ID`, `#/lock/RESOURCE`, `#/worker/LABEL`.

export const VIEWS = ['overview', 'tasks', 'timeline', 'workers', 'events', 'rates'];
const DETAILS = ['task', 'lock', 'worker'];

/** Reads a fragment. An unknown one is the overview. */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const slash = path.indexOf('/');
  const view = slash < 0 ? path : path.slice(0, slash);
  const filter = Object.fromEntries(new URLSearchParams(query));
  if (DETAILS.includes(view) && slash > 0) {
    const id = decoded(path.slice(slash + 1));
    if (id) return { view, id, filter };
  }
  return VIEWS.includes(view) ? { view, id: null, filter } : { view: 'overview', id: null, filter: {} };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Writes an address as a fragment; empty conditions are left out. */
export function format({ view, id = null, filter = {} }) {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();
  const path = id === null ? view : `${view}/${encodeURIComponent(id)}`;
  return `#/${path}${query ? `?${query}` : ''}`;
}

export const toTask = (id) => format({ view: 'task', id });
export const toWorker = (label) => format({ view: 'worker', id: label });

/** The address of a resource; a task has a page of its own. */
export const toResource = (resource) => (resource.startsWith('task:') ? toTask(resource.slice(5)) : format({ view: 'lock', id: resource }));

export const current = () => parse(location.hash);

/** Goes to an address; Back leads to the one before. */
export function go(address) {
  show(format(address), 'pushState');
}

function show(hash, way) {
  if (location.hash === hash) return;
  history[way](null, '', hash);
  dispatchEvent(new Event('hashchange'));
}

/**
 * Changes conditions of the present view. While a person types, each letter replaces the address of
 * the one before, so that Back leaves the whole text.
 */
export function changeFilter(change, { isTyping = false } = {}) {
  const address = current();
  show(format({ ...address, filter: { ...address.filter, ...change } }), isTyping ? 'replaceState' : 'pushState');
}
