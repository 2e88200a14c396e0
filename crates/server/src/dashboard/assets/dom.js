// Building the page. Whatever others wrote goes in as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

/** An element with these properties and children; strings become text. */
export function h(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

/** The same, for drawings. */
export function s(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

function furnish(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child);
  }
}

/** Replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Sets the text only where it differs, so that nothing is laid out again for nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or removes an attribute only where it differs. */
export function mark(element, name, value) {
  if (value === undefined || value === null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** What others wrote: it may run in either direction, and stays within its own bounds. */
export function foreign(text, properties = {}) {
  return h('bdi', properties, text);
}

/**
 * Makes the children of `parent` match `items`, keeping the elements of those that stay, and with
 * them focus, scroll and animations. `update` gets each element with its item.
 */
export function reconcile(parent, items, keyOf, create, update) {
  const known = parent.known ?? (parent.known = new Map());
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (wanted.has(key)) continue;
    wanted.add(key);
    let element = known.get(key);
    if (!element) {
      element = create(item);
      known.set(key, element);
    }
    update(element, item);
    if (element === place) place = place.nextSibling;
    else parent.insertBefore(element, place);
  }
  for (const [key, element] of known) {
    if (wanted.has(key)) continue;
    element.remove();
    known.delete(key);
  }
}

/** Says what could be done where there is nothing to show. */
export function empty(title, text, command) {
  return h('div', { class: 'empty' },
    h('p', { class: 'empty-title' }, title),
    h('p', {}, text),
    command && h('pre', {}, h('code', {}, command)));
}
