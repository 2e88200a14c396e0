// Helpers that build and update elements. Text from users is inserted as text, never as markup.

import { exact, moment } from './words.js';

const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element with these properties and children; strings become text nodes. */
export function h(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

/** Creates an SVG element. */
export function s(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

function furnish(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : attribute(name, value));
  }
  add(element, children);
  return element;
}

// Characters that change the direction of the text around them, with which a name can look like another.
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The text with an escape in the place of each character that reorders text. */
export function shown(text) {
  return text.replace(REORDERING, (character) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The value of an attribute; what a person reads or hears of it is text as any other. */
function attribute(name, value) {
  return name === 'title' || name === 'aria-label' ? shown(String(value)) : value;
}

function add(element, children) {
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false) continue;
    element.append(typeof child === 'string' ? shown(child) : child);
  }
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Sets the text only if it differs, to avoid a needless layout. */
export function say(element, text) {
  const words = typeof text === 'string' ? shown(text) : text;
  if (element.textContent !== words) element.textContent = words;
}

/** Sets or removes an attribute only if it differs. */
export function mark(element, name, value) {
  if (value === undefined || value === null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(attribute(name, value))) {
    element.setAttribute(name, attribute(name, value));
  }
}

/** Text from users: it may have either direction, and cannot affect its surroundings. */
export function foreign(text, properties = {}) {
  return h('bdi', properties, text);
}

/** A link within the page. */
export function link(href, ...children) {
  return h('a', { href }, ...children);
}

/** A link to a task, a lock or a worker, with a name that a user chose. */
export function nameLink(href, text, properties = {}) {
  return h('a', { href, ...properties }, h('bdi', {}, text));
}

/** A time in words; the exact one is shown on hover. */
export function when(at, words) {
  return h('time', { datetime: at, title: exact(at) }, words ?? moment(at));
}

/**
 * Makes the children of `parent` match `items`. Elements of items that stay are kept, with their focus,
 * scroll position and animations. `update` is called with each element and its item.
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

/** A hint for an empty view: what is missing, and a command to try. */
export function empty(title, text, command) {
  return h('div', { class: 'empty' },
    h('p', { class: 'empty-title' }, title),
    h('p', {}, text),
    command && h('pre', {}, h('code', {}, command)));
}
