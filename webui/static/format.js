// Numbers, times and durations as the page writes them. Nothing here judges.
import { lang } from './words.js'

const kept = new Map()
function intl(kind, options) {
  const key = lang.value + kind.name + JSON.stringify(options)
  if (!kept.has(key)) kept.set(key, new kind(lang.value, options))
  return kept.get(key)
}

export const none = '—'

// number shows up to so many digits after the point, and no zeros at the end.
export function number(value, digits = 2) {
  if (value === undefined || value === null) return none
  return intl(Intl.NumberFormat, { maximumFractionDigits: digits }).format(value)
}

export const signed = (value, digits = 2) =>
  intl(Intl.NumberFormat, { maximumFractionDigits: digits, signDisplay: 'exceptZero' }).format(value).replace('-', '−')

// duration is "9m 12s", under a minute "34s", under ten seconds "1.3s".
export function duration(ns) {
  if (ns === undefined || ns === null) return none
  const seconds = ns / 1e9
  if (seconds < 1) return number(Math.round(ns / 1e6), 0) + ' ms'
  if (seconds < 10) return number(seconds, 1) + 's'
  const whole = Math.round(seconds)
  if (whole < 60) return whole + 's'
  const pad = n => String(n).padStart(2, '0')
  if (whole < 3600) return Math.floor(whole / 60) + 'm ' + pad(whole % 60) + 's'
  return Math.floor(whole / 3600) + 'h ' + pad(Math.floor((whole % 3600) / 60)) + 'm'
}

export function money(value, currency = 'USD') {
  if (value === undefined || value === null) return none
  if (value === 0) return '$0'
  const digits = value < 1 ? 3 : 2
  return intl(Intl.NumberFormat, { style: 'currency', currency, minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value)
}

export function bytes(n) {
  if (n < 1000) return n + ' B'
  if (n < 1e6) return number(n / 1000, 1) + ' KB'
  return number(n / 1e6, 1) + ' MB'
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
