import { html } from '../ui.js'
import { t } from '../words.js'
import { Icon } from './icon.js'

// What a status looks like. Its word is always beside its glyph.
const looks = {
  running: ['now', 'run'],
  pausing: ['off', 'pause'],
  paused: ['off', 'pause'],
  pending: ['off', 'wait'],
  asks: ['ask', 'ask'],
  waiting: ['ask', 'ask'],
  completed: ['good', 'ok'],
  limit: ['warn', 'stop'],
  interrupted: ['warn', 'broken'],
  undone: ['warn', 'undo'],
  rejected: ['warn', 'undo'],
  failed: ['bad', 'cross'],
  canceled: ['off', 'no'],
  skipped: ['off', 'right'],
}

// limits are the stop reasons of a loop that ended at a limit, and not by a criterion of its own.
export const limits = ['max_iterations', 'timeout', 'budget']

// ofRow is the status of a run in a list, whose status and stop reason the server has sent.
export const ofRow = (status, reason) =>
  status === 'waiting' ? 'asks' : status === 'completed' && limits.includes(reason) ? 'limit' : status === 'not_begun' ? 'pending' : status

export function Status({ status, box }) {
  const [colour, glyph] = looks[status] || ['off', 'wait']
  return html`<span class=${`st ${colour}${box ? ' box' : ''}`}><${Icon} name=${glyph} spin=${status === 'running'} />${t('status.' + status)}</span>`
}

// over says that a run has ended.
export const over = head => ['completed', 'limit', 'failed', 'canceled'].includes(head.status)

export const glyphOf = status => looks[status] || ['off', 'wait']
