// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/budget"
)

// F10, LOOP 23: what a call cost follows from the price list and from what it
// used. Sums of cents are cents.
func TestCost(t *testing.T) {
	b := budget.New(budget.Limits{}, prices)
	for range 3 {
		use(t, b, "a", 10_000, 2000)
	}
	if got := *b.Used().Cost; got != 0.18 {
		t.Errorf("cost %v", got)
	}
	reserve(t, b, budget.Request{Model: "b"}).Commit(budget.Usage{InputTokens: 1000, CachedTokens: 800})
	if got := *b.Used().Cost; got != 0.18+0.0002 {
		t.Errorf("cached input costs less: got %v", got)
	}
	reserve(t, b, budget.Request{Model: "a"}).Commit(budget.Usage{InputTokens: 1000, CachedTokens: 1000})
	if got := *b.Used().Cost; got != 0.1832 {
		t.Errorf("without a price for cached input it costs as much: got %v", got)
	}
	reserve(t, b, budget.Request{Model: "nobody's"}).Commit(budget.Usage{InputTokens: 1000, Cost: new(1.0)})
	if got := *b.Used().Cost; got != 1.1832 {
		t.Errorf("the provider said what it cost: got %v", got)
	}
}

// F10, LOOP 23: a call without a price makes the whole of unknown cost, and is
// not made where cost is limited.
func TestUnknownPriceIsNotZero(t *testing.T) {
	run := budget.New(budget.Limits{}, prices)
	priced, limited := run.Child(budget.Limits{}), run.Child(budget.Limits{Cost: new(1.0)})
	use(t, priced, "a", 10, 10)
	use(t, run, "c", 10, 10)
	use(t, priced, "a", 10, 10)
	if got := run.Used(); got.Cost != nil || got.Calls != 3 {
		t.Errorf("the run has used %+v", got)
	}
	if got := priced.Used().Cost; got == nil || *got != 0.00036 {
		t.Errorf("below, the cost is known: %v", got)
	}
	_, err := limited.Child(budget.Limits{}).Reserve(budget.Request{Model: "c"})
	if e, ok := errors.AsType[*budget.UnknownPriceError](err); !ok || e.Model != "c" || errors.Is(err, budget.ErrExceeded) {
		t.Fatalf("got %v", err)
	}
	if want := `add "c" to the prices`; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say: %s", err, want)
	}
	use(t, limited, "a", 10, 10)
}

// LOOP 23: tokens that nobody has counted have no known cost, save if they are free.
func TestUncountedTokensAreNotZero(t *testing.T) {
	for model, known := range map[string]bool{"a": false, "local": true} {
		b := budget.New(budget.Limits{}, budget.Prices{"a": prices["a"], "local": {}})
		room := reserve(t, b, budget.Request{Model: model})
		room.Commit(room.Estimate())
		if u := b.Used(); (u.Cost != nil) != known || !u.Estimated || u.Calls != 1 {
			t.Errorf("%s: %+v", model, u)
		}
	}
	b := budget.New(budget.Limits{Tokens: 1000}, prices)
	room := reserve(t, b, budget.Request{Model: "a", InputTokens: 100, OutputTokens: 200})
	room.Commit(room.Estimate())
	want := budget.Usage{Calls: 1, InputTokens: 100, OutputTokens: 200, Cost: new(0.0033), Estimated: true}
	if diff := cmp.Diff(want, b.Used()); diff != "" {
		t.Errorf("an estimate is what was reserved (-want +got):\n%s", diff)
	}
}

// LOOP 23: a limit of nothing lets through what is free.
func TestFreeCallsFitInNothing(t *testing.T) {
	b := budget.New(budget.Limits{Cost: new(0.0)}, budget.Prices{"local": {}, "a": prices["a"]})
	use(t, b, "local", 100, 100)
	refused(t, b, budget.Request{Model: "a", InputTokens: 1})
	use(t, b, "local", 100, 100)
}

// LOOP 23: where a model's price is looked for.
func TestPricesOf(t *testing.T) {
	list := budget.Prices{
		"gpt-x": {Input: 1, Output: 1}, "azure/gpt-x": {Input: 2, Output: 2},
		"openai/gpt-y": {Input: 3, Output: 3},
		"one/llama":    {Input: 4, Output: 4}, "two/llama": {Input: 5, Output: 5},
		"one/phi": {Input: 6, Output: 6}, "two/phi": {Input: 6, Output: 6},
		"router/meta/llama": {Input: 7, Output: 7},
		"wrong":             {Input: -1}, "nan": {Input: math.NaN()},
	}
	for name, want := range map[string]float64{
		"gpt-x": 1, "azure/gpt-x": 2, "openai/gpt-x": 1, "gpt-y": 3, "openai/gpt-y": 3, "azure/gpt-y": -1,
		"llama": -1, "one/llama": 4, "phi": 6, "meta/llama": 7, "wrong": -1, "nan": -1, "": -1, "gpt": -1,
	} {
		price, ok := list.Of(name)
		if ok != (want >= 0) || ok && price.Input != want {
			t.Errorf("%q: %+v, %v", name, price, ok)
		}
	}
	if _, ok := budget.Prices(nil).Of("gpt-x"); ok {
		t.Error("a price in no list")
	}
}

// LOOP 23: a price list in a file names both prices: one left out is not zero.
func TestPricesFromAFile(t *testing.T) {
	want := budget.Prices{"m": {Input: 3, Output: 15, CachedInput: 0.3}}
	for text, wrong := range map[string]string{
		`{"m": {"input": 3, "output": 15, "cached_input": 0.3}}`: "",
		`{"m": {"input": 3}}`:                "both input and output are needed",
		`{"m": {"output": 3}}`:               "both input and output are needed",
		`{"m": {"input": 3, "output": -15}}`: "want 0 or more",
		`{"m": 3}`:                           "cannot",
	} {
		for format, decode := range map[string]func([]byte, any) error{"JSON": json.Unmarshal, "YAML": func(b []byte, v any) error { return yaml.Unmarshal(b, v) }} {
			var got budget.Prices
			err := decode([]byte(text), &got)
			if wrong != "" {
				if err == nil || !strings.Contains(err.Error(), wrong) {
					t.Errorf("%s %s: got %v", format, text, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", format, diff)
			}
		}
	}
}

// F10: sums and differences of usage.
func TestUsage(t *testing.T) {
	used := func(calls, in, out int64, cost ...float64) budget.Usage {
		u := budget.Usage{Calls: calls, InputTokens: in, OutputTokens: out}
		if len(cost) > 0 {
			u.Cost = &cost[0]
		}
		return u
	}
	nothing := budget.Usage{}
	partly := used(3, 30, 11)
	partly.KnownCost = 0.1
	for _, tt := range []struct{ u, v, sum budget.Usage }{
		{used(1, 10, 5, 0.1), used(2, 20, 6, 0.2), used(3, 30, 11, 0.3)},
		{used(1, 10, 5, 0.1), used(2, 20, 6), partly},
		{nothing, used(2, 20, 6, 0.2), used(2, 20, 6, 0.2)},
		{nothing, used(2, 20, 6), used(2, 20, 6)},
		{used(2, 20, 6, 0.2), nothing, used(2, 20, 6, 0.2)},
		{nothing, nothing, nothing},
	} {
		if diff := cmp.Diff(tt.sum, tt.u.Add(tt.v)); diff != "" {
			t.Errorf("%+v + %+v (-want +got):\n%s", tt.u, tt.v, diff)
		}
		want := tt.v
		if tt.u.Cost == nil && tt.u != nothing {
			want.Cost = nil
		}
		if diff := cmp.Diff(want, tt.sum.Sub(tt.u)); diff != "" {
			t.Errorf("%+v - %+v (-want +got):\n%s", tt.sum, tt.u, diff)
		}
	}
}

// What is written into a cache costs more than other input, and what is read from it less.
func TestCacheWritesCost(t *testing.T) {
	used := budget.Usage{Calls: 1, InputTokens: 1_000_000, CachedTokens: 400_000, CacheWriteTokens: 200_000,
		CacheWrite1hTokens: 100_000}
	for name, c := range map[string]struct {
		price       budget.Price
		cost, saved float64
	}{
		"as listed":      {budget.Price{Input: 10, CachedInput: 1, CacheWrite: 13, CacheWrite1h: 30}, 3 + 0.4 + 2.6 + 3, 1},
		"as by default":  {budget.Price{Input: 10, CachedInput: 1}, 3 + 0.4 + 2.5 + 2, 2.1},
		"more than none": {budget.Price{Input: 10}, 3 + 4 + 2.5 + 2, -1.5},
	} {
		b := budget.New(budget.Limits{}, budget.Prices{"m": c.price})
		reserve(t, b, budget.Request{Model: "m"}).Commit(used)
		want := used
		want.Cost, want.CacheSaved = &c.cost, c.saved
		if diff := cmp.Diff(want, b.Used()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want, budget.Prices{"m": c.price}.Priced("m", used)); diff != "" {
			t.Errorf("%s, from the log (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(budget.Usage{}, b.Used().Sub(b.Used().Add(budget.Usage{}))); diff != "" {
			t.Errorf("%s: what is taken off again (-want +got):\n%s", name, diff)
		}
	}
}

// A reservation counts on the cache only as far as the provider has reported, and with the price
// of writing where the call may write.
func TestReservationsCountTheCache(t *testing.T) {
	list := budget.Prices{"m": {Input: 10, CachedInput: 1, Output: 10}}
	for name, c := range map[string]struct {
		ask  budget.Request
		need float64
	}{
		"nothing is known": {budget.Request{}, 10},
		"it may write":     {budget.Request{CacheWrite: true}, 12.5},
		"for an hour":      {budget.Request{CacheWrite: true, CacheWrite1h: true}, 20},
		"half was cached":  {budget.Request{CachedTokens: 500_000, CacheWrite: true}, 0.5 + 6.25},
		"all was cached":   {budget.Request{CachedTokens: 2_000_000, CacheWrite: true}, 1},
	} {
		c.ask.Model, c.ask.InputTokens = "m", 1_000_000
		if err := budget.New(budget.Limits{Cost: new(c.need)}, list).Check(c.ask); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := budget.New(budget.Limits{Cost: new(c.need - 0.001)}, list).Check(c.ask); err == nil {
			t.Errorf("%s: it fits in less than %v", name, c.need)
		}
	}
}
