// Numbers, times and durations as the page writes them. Nothing here judges.
import { lang } from './words.js'

const kept = new Map()
function intl(kind, options) {
  const key = lang.value + kind.name + JSON.stringify(options)
  if (!kept.has(key)) kept.set(key, new kind(lang.value, options))
  return kept.get(key)
}

export const none = '—'

// A figure is written as internal/values/brief writes it for the terminal; a test runs the same cases through both.
const nothing = value => value === undefined || value === null
const plain = (value, options) => intl(Intl.NumberFormat, { useGrouping: true, ...options }).format(value + 0)
const digits = (value, most) => Number(new Intl.NumberFormat('en', { maximumSignificantDigits: most, useGrouping: false }).format(value))

// whole is a count: "1,173".
export const whole = value => (nothing(value) ? none : plain(value, { maximumFractionDigits: 0 }))

// setting is a number as a definition has it, with all its digits and without groups.
export const setting = value => (nothing(value) ? none : plain(value, { maximumFractionDigits: 20, useGrouping: false }))

// score has four significant digits, and is never a whole number that it is not: "7.997", "12,346", "7.99996".
export function score(value) {
  if (nothing(value)) return none
  if (Math.abs(value) >= 1000) return whole(value)
  const short = digits(value, 4)
  return plain(Number.isInteger(short) && short !== value ? digits(value, 6) : short, { maximumFractionDigits: 20 })
}

// signed is a change: "+1.6", "-0.3".
export const signed = value => (value < 0 ? '' : '+') + score(value)

// withinNoise says that a judge does not tell two scores apart: they differ by no more than twice the standard error of their difference.
export const withinNoise = (a, b) => {
  const error = Math.hypot(a.off_by || 0, b.off_by || 0)
  return error > 0 && Math.abs(a.score - b.score) <= 2 * error
}

// offBy is a score and by how much it is off, with two digits: "8.1 ± 0.3".
export function offBy(value, off) {
  if (!off) return score(value)
  return score(value) + ' ± ' + (off >= 100 ? whole(off) : plain(digits(off, 2), { maximumFractionDigits: 20 }))
}

// duration has two units at most: "850ms", "1.3s", "34s", "9m 12s", "30m", "2h 05m".
export function duration(ns) {
  if (nothing(ns)) return none
  const ms = Math.round(Math.max(0, ns) / 1e6)
  if (ms < 1000) return ms + 'ms'
  const tenths = Math.round(ns / 1e8)
  if (tenths < 100) return plain(tenths / 10) + 's'
  const seconds = Math.round(ns / 1e9)
  if (seconds < 60) return seconds + 's'
  const pair = (n, of, unit, small) => whole(Math.floor(n / of)) + unit + (n % of ? ' ' + String(n % of).padStart(2, '0') + small : '')
  return seconds < 3600 ? pair(seconds, 60, 'm', 's') : pair(Math.round(ns / 6e10), 60, 'h', 'm')
}

// money is an amount in the currency of the price list, which it does not name: "1,234.50", "0.40", "0.0213".
export function money(value) {
  if (nothing(value)) return none
  if (value === 0) return '0'
  if (Math.abs(value) >= 1) return plain(value, { minimumFractionDigits: 2, maximumFractionDigits: 2 })
  return plain(digits(value, 3), { minimumFractionDigits: 2, maximumFractionDigits: 20 })
}

// percent is a share of 1: "62%".
export const percent = share => whole(100 * share) + '%'

// bytes is a size: "950B", "1.2kB", "3.0MB".
export function bytes(n) {
  if (n < 1000) return n + 'B'
  const units = ['kB', 'MB', 'GB', 'TB']
  let size = n / 1000
  for (; size >= 999.95 && units.length > 1; units.shift()) size /= 1000
  return plain(size, { minimumFractionDigits: 1, maximumFractionDigits: 1 }) + units[0]
}

const day = d => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime()

// daysAgo is 0 for today and 1 for yesterday.
export const daysAgo = (at, now = new Date()) => Math.round((day(now) - day(new Date(at))) / 86_400_000)

// clock is "14:02" on the day itself; the date comes first on others.
export function clock(at) {
  if (!at) return none
  const d = new Date(at)
  const time = intl(Intl.DateTimeFormat, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(d)
  if (daysAgo(d) === 0) return time
  return intl(Intl.DateTimeFormat, { day: 'numeric', month: 'short' }).format(d) + ' ' + time
}

export const exactTime = at =>
  at ? intl(Intl.DateTimeFormat, { dateStyle: 'medium', timeStyle: 'long' }).format(new Date(at)) : ''

export const dayName = at => {
  const ago = daysAgo(at)
  if (ago <= 1) return intl(Intl.RelativeTimeFormat, { numeric: 'auto' }).format(-ago, 'day')
  return intl(Intl.DateTimeFormat, { weekday: 'long', day: 'numeric', month: 'long' }).format(new Date(at))
}
