import { html, base } from '../ui.js'

// Icon is a glyph of icons.svg, in the colour of the text around it. It never stands alone: a
// word is beside it, or the button that holds it has a name.
export function Icon({ name, spin }) {
  return html`<svg class=${spin ? 'i spin' : 'i'} viewBox="0 0 16 16" aria-hidden="true"><use href=${base + '/icons.svg#' + name} /></svg>`
}
