// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// ListPrice is the published price of a provider for a model, in US dollars, on one day. It is for estimates before a
// run; budgets use only the prices that they are given.
type ListPrice struct {
	Price
	// Date is the day on which the price was read, such as 2026-10-24, and Source the page that has it.
	Date, Source string
	// UpTo is the largest number of input tokens in a request for which the price holds; 0 means any number.
	UpTo int64
}

// Listed returns the list price of a model, which is named as provider/name; ok is false if the list has
// none. A model with a date in its name has the price of the model without the date. The list is part of
// the program, so Listed fetches nothing. It was compiled from published copies of the providers' pages.
func Listed(model string) (p ListPrice, ok bool) {
	who, name, _ := strings.Cut(model, "/")
	of, ok := listed[who]
	if !ok {
		return ListPrice{}, false
	}
	row, ok := of.rows[name]
	if !ok {
		row, ok = of.rows[dated().ReplaceAllString(name, "")]
	}
	if !ok {
		return ListPrice{}, false
	}
	price := Price{Input: row.input, Output: row.output, CachedInput: row.cached, CacheWrite: row.write}
	return ListPrice{price, row.date, of.source, row.upTo}, true
}

// dated finds the date at the end of a model's name: -20250929 or -2025-08-07.
var dated = lazyregexp.New(`-20\d\d-?\d\d-?\d\d$`)

// list is the price list of one provider.
type list struct {
	source string
	rows   map[string]listRow
}

// listRow has prices for a million tokens. write is 0 if writing into the cache costs nothing more.
type listRow struct {
	date                         string
	input, output, cached, write float64
	upTo                         int64
}

// The days of several rows.
const sep, oct, nov = "2026-09-30", "2026-10-16", "2026-11-20"

var listed = map[string]list{
	"anthropic": {"https://platform.claude.com/docs/en/about-claude/pricing", map[string]listRow{
		"claude-fable-5-1":  {"2026-10-24", 10, 50, 0.25, 12.5, 0},
		"claude-fable-5":    {"2026-10-24", 10, 50, 1, 12.5, 0},
		"claude-opus-5-5":   {"2026-10-24", 4, 20, 0.2, 5, 0},
		"claude-opus-5":     {"2026-10-24", 5, 25, 0.5, 6.25, 0},
		"claude-opus-4-8":   {"2026-10-24", 5, 25, 0.5, 6.25, 0},
		"claude-opus-4-7":   {"2026-10-24", 5, 25, 0.5, 6.25, 0},
		"claude-opus-4-6":   {"2026-10-24", 5, 25, 0.5, 6.25, 0},
		"claude-opus-4-5":   {"2026-10-24", 5, 25, 0.5, 6.25, 0},
		"claude-sonnet-5-5": {"2026-10-24", 2, 10, 0.1, 2.5, 0},
		"claude-sonnet-5":   {"2026-10-24", 2, 10, 0.2, 2.5, 0},
		"claude-sonnet-4-6": {"2026-10-24", 3, 15, 0.3, 3.75, 0},
		"claude-sonnet-4-5": {"2026-10-24", 3, 15, 0.3, 3.75, 0},
		"claude-haiku-5-5":  {"2026-10-24", 0.1, 0.5, 0.01, 0.125, 100_000},
		"claude-haiku-4-5":  {"2026-10-24", 1, 5, 0.1, 1.25, 0},
	}},
	"openai": {"https://developers.openai.com/api/docs/pricing", map[string]listRow{
		"gpt-6.2-astra": {nov, 8, 40, 0.4, 10, 272_000},
		"gpt-6.2-sol":   {nov, 2, 10, 0.1, 2.5, 272_000},
		"gpt-6.1-terra": {"2026-10-26", 1, 5, 0.05, 1.25, 272_000},
		"gpt-6.1-sol":   {nov, 2, 10, 0.1, 2.5, 272_000},
		"gpt-6-astra":   {oct, 10, 50, 1, 12.5, 272_000},
		"gpt-6-sol":     {oct, 2, 10, 0.2, 2.5, 272_000},
		"gpt-6-luna":    {oct, 0.1, 0.5, 0.01, 0.125, 272_000},
		"gpt-5.5":       {oct, 5, 30, 0.5, 0, 272_000},
		"gpt-5.4":       {oct, 2.5, 15, 0.25, 0, 272_000},
		"gpt-5.4-mini":  {oct, 0.75, 4.5, 0.075, 0, 0},
		"gpt-5.4-nano":  {oct, 0.2, 1.25, 0.02, 0, 0},
		"gpt-5.2":       {oct, 1.75, 14, 0.175, 0, 0},
		"gpt-5":         {oct, 1.25, 10, 0.125, 0, 0},
		"gpt-5-mini":    {oct, 0.25, 2, 0.025, 0, 0},
		"gpt-5-nano":    {oct, 0.05, 0.4, 0.005, 0, 0},
		"gpt-4.1":       {oct, 2, 8, 0.5, 0, 0},
		"gpt-4.1-mini":  {oct, 0.4, 1.6, 0.1, 0, 0},
	}},
	"gemini": {"https://ai.google.dev/gemini-api/docs/pricing", map[string]listRow{
		"gemini-4-neon":         {"2026-11-19", 3, 15, 0.15, 0, 0},
		"gemini-4-hydrogen":     {"2026-11-19", 1.5, 7.5, 0.075, 0, 0},
		"gemini-3.5-flash":      {sep, 1.5, 9, 0.15, 0, 0},
		"gemini-2.5-pro":        {sep, 1.25, 10, 0.125, 0, 200_000},
		"gemini-2.5-flash":      {sep, 0.3, 2.5, 0.03, 0, 0},
		"gemini-2.5-flash-lite": {sep, 0.1, 0.4, 0.01, 0, 0},
	}},
}
