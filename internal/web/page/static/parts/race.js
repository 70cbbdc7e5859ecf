import { html } from '../ui.js'
import { t } from '../words.js'
import { whole, offBy, none } from '../format.js'
import { AgentName } from './agent-name.js'

// raced puts what a race knows of its loops into the rows of the loops.
export const raced = s => s.race ? { ...s, steps: (s.steps || []).map(c => ({ ...c, lane: s.race.lanes.find(l => l.loop === c.name) })) } : s

// LaneTags say of a loop that it has won a race, or that the judge does not tell it from the winner.
export const LaneTags = ({ lane }) => lane && html`${lane.won && html`<span class="tag good">${t('race.won')}</span>`}${lane.within_noise && html`<span class="tag">${t('within.noise')}</span>`}`

// Race is the decision between loops that ran side by side. onLoop shows one of them.
export function Race({ race, looks, onLoop }) {
  return html`<p class="pad stopline"><b>${race.words.lead}</b> ${race.words.rest}</p>
    <div class="scroll-x" tabindex="0" role="group" aria-label=${t('race')}><table class="ledger race"><caption class="sr">${t('race')}</caption>
      <thead><tr><th scope="col">${t('loop')}</th><th scope="col" class="num">${t('score')}</th><th scope="col" class="num">${t('iteration')}</th></tr></thead>
      <tbody>${race.lanes.map(l => html`<tr key=${l.loop}><th scope="row">${onLoop && l.address ? html`<button class="linklike" onClick=${() => onLoop(l.address)}><${AgentName} name=${l.loop} looks=${looks} /></button>` : html`<${AgentName} name=${l.loop} looks=${looks} />`} <${LaneTags} lane=${l} />${l.failure && html`<span class="small st bad">${l.failure}</span>`}</th>
        <td class="num">${l.score === undefined ? none : offBy(l.score, l.off_by)}</td><td class="num">${l.best ? html`${whole(l.best)} <span class="soft">${t('of', { bound: whole(l.iterations) })}</span>` : whole(l.iterations)}</td></tr>`)}</tbody></table></div>`
}
