// The actions of admins on holds and sections. The page creates these controls only for the role `admin`.

import { ask } from './connection.js';
import { confirm, toast } from './dialogs.js';
import { foreign, h } from './dom.js';
import { brief } from './words.js';

const name = (text) => foreign(brief(text, 80), { class: 'name' });

/** A button that breaks a hold, with a reason for the audit log. */
export function breakButton(lock) {
  const act = async (reason) => {
    await ask('POST', '/v1/locks/break', { resource: lock.resource, token: lock.token, reason });
    return `Broke the hold of ${lock.holder} on ${lock.resource}.`;
  };
  const ask_first = () => confirm({
    title: 'Break this hold?',
    lead: h('p', {}, name(lock.holder), ' loses ', name(lock.resource),
      ` (token ${lock.token}) and is notified. If it is still working, make sure that two holders at once do no harm.`),
    field: { label: 'Reason, for the audit log', placeholder: 'its machine is gone', missing: 'A reason is required for the audit log.' },
    button: 'Break', danger: true, act,
  });
  return h('button', { type: 'button', class: 'small danger-quiet', 'data-action': 'break', 'aria-label': `Break ${lock.resource}`, onclick: ask_first }, 'Break…');
}

async function post(path, done) {
  try {
    await ask('POST', path, {});
    toast(done);
  } catch (problem) {
    toast(problem.message || 'Sign in again.', 'bad');
  }
}

/** A button that pauses or resumes a section; `*` is everything. */
export function pauseButton(section, isPaused) {
  const verb = isPaused ? 'resume' : 'pause';
  const what = section === '*' ? 'Everything' : section;
  const done = isPaused ? `${what}: tasks can be claimed again.` : `${what} is paused: its tasks cannot be claimed.`;
  const act = () => post(`/v1/sections/${encodeURIComponent(section)}/${verb}`, done);
  const words = section === '*' ? `${isPaused ? 'Resume' : 'Pause'} all` : (isPaused ? 'Resume' : 'Pause');
  return h('button', { type: 'button', class: 'small', 'data-action': verb, 'aria-label': `${words} ${section === '*' ? 'sections' : section}`, onclick: act }, words);
}
