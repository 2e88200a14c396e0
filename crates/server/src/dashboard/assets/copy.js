// Buttons that copy a name or an address.

import { toast } from './dialogs.js';
import { h, s } from './dom.js';

/** Copies a text. Browsers offer the clipboard only to pages of this machine and over TLS. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = h('textarea', { class: 'hidden', 'aria-hidden': 'true' });
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  if (!isDone) throw new Error('The browser does not allow it.');
  return undefined;
}

/** A small button that copies `text`; `what` says what it is. */
export function copyButton(text, what) {
  const act = async (event) => {
    event.stopPropagation();
    event.preventDefault();
    await copy(text).then(() => toast(`Copied the ${what}.`), (problem) => toast(`Not copied: ${problem.message}`, 'bad'));
  };
  return h('button', { type: 'button', class: 'copy', 'aria-label': `Copy the ${what}`, title: `Copy the ${what}`, onclick: act },
    s('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' },
      s('rect', { x: 3.5, y: 3.5, width: 7.5, height: 7.5, rx: 1.5 }), s('path', { d: 'M8.5 1H2.5A1.5 1.5 0 0 0 1 2.5v6' })));
}

/** A button that copies the address of the page as it is now. */
export function copyAddressButton() {
  const act = () => copy(location.href).then(() => toast('Copied the address.'), (problem) => toast(`Not copied: ${problem.message}`, 'bad'));
  return h('button', { type: 'button', class: 'small', onclick: act }, 'Copy address');
}
