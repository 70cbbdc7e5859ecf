// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Prices maps the names of models to their prices: the provider's own name for a model, or
// provider/name if two providers have different prices.
type Prices map[string]Price

// Price is the price of one model for a million tokens, in any currency, the same for all models. A
// free model has the price 0; a model whose price is unknown is not in the list.
type Price struct {
	Input  float64 `json:"input" yaml:"input"`
	Output float64 `json:"output" yaml:"output"`
	// CachedInput is the price of input that the provider had in a cache. 0 means the price of
	// other input.
	CachedInput float64 `json:"cached_input,omitzero" yaml:"cached_input,omitempty"`
	// CacheWrite is the price of input that the provider writes into a cache for five minutes, and
	// CacheWrite1h of input that it writes for an hour. 0 means 1.25 and 2 times the price of input, as
	// Anthropic charges: https://platform.claude.com/docs/en/build-with-claude/prompt-caching. They
	// apply only to tokens that the provider reports as written; OpenAI reports them since GPT-5.6, Gemini
	// reports none.
	CacheWrite   float64 `json:"cache_write,omitzero" yaml:"cache_write,omitempty"`
	CacheWrite1h float64 `json:"cache_write_1h,omitzero" yaml:"cache_write_1h,omitempty"`
}

// Of returns the price of a model. It looks for the name as given; then, for provider/name, for the
// bare name; and for a bare name, for the entries of all providers, which have to agree. A price
// that is negative or not a number is ignored.
func (p Prices) Of(model string) (Price, bool) {
	if price, ok := p[model]; ok {
		return price, price.check() == nil
	}
	if _, bare, ok := strings.Cut(model, "/"); ok {
		if price, ok := p[bare]; ok {
			return price, price.check() == nil
		}
	}
	var found *Price
	for name, price := range p {
		if _, bare, ok := strings.Cut(name, "/"); !ok || bare != model {
			continue
		}
		if found != nil && *found != price {
			return Price{}, false
		}
		found = &price
	}
	if found == nil {
		return Price{}, false
	}
	return *found, found.check() == nil
}

// Priced returns u with the cost of a model's tokens and the savings by its cache, if the model's price is
// known.
func (p Prices) Priced(model string, u Usage) Usage {
	if price, ok := p.Of(model); ok {
		in := u.internal(Price{}, false)
		u.Cost, u.CacheSaved = new(price.billionths(in)/1e9), price.saves(in)/1e9
	}
	return u
}

func (p Price) check() error {
	for _, f := range []float64{p.Input, p.Output, p.CachedInput, p.CacheWrite, p.CacheWrite1h} {
		if !(f >= 0) || math.IsInf(f, 1) {
			return fmt.Errorf("price %v: want 0 or more per million tokens", f)
		}
	}
	return nil
}

// filled returns p with a price for each kind of input.
func (p Price) filled() Price {
	p.CachedInput = cmp.Or(p.CachedInput, p.Input)
	p.CacheWrite = cmp.Or(p.CacheWrite, 1.25*p.Input)
	p.CacheWrite1h = cmp.Or(p.CacheWrite1h, 2*p.Input)
	return p
}

// Cost returns the cost of u's tokens, in the currency of the price list.
func (p Price) Cost(u Usage) float64 { return p.billionths(u.internal(Price{}, false)) / 1e9 }

// MostInput returns the largest price that an input token may have. Without writes, this is the price
// of a token that is not written into a cache.
func (p Price) MostInput(writes bool) float64 {
	if full := p.filled(); writes {
		return max(p.Input, p.CachedInput, full.CacheWrite, full.CacheWrite1h)
	}
	return max(p.Input, p.CachedInput)
}

// billionths returns the cost of tokens in billionths; a token costs a millionth of the price.
func (p Price) billionths(u usage) float64 {
	p = p.filled()
	plain := u.input - u.cached - u.write - u.write1h
	return 1e3 * (float64(plain)*p.Input + float64(u.cached)*p.CachedInput + float64(u.write)*p.CacheWrite +
		float64(u.write1h)*p.CacheWrite1h + float64(u.output)*p.Output)
}

// saves returns how much less the tokens cost than without a cache, in billionths. It is negative if
// more was paid for writing than reading has saved.
func (p Price) saves(u usage) float64 {
	p = p.filled()
	return 1e3 * (float64(u.cached)*(p.Input-p.CachedInput) + float64(u.write)*(p.Input-p.CacheWrite) +
		float64(u.write1h)*(p.Input-p.CacheWrite1h))
}

// reserved returns the price at which a call's input and output are reserved.
func (p Price) reserved(r Request, input int64) Price {
	most := p.MostInput(false)
	if r.CacheWrite {
		most = max(most, p.filled().CacheWrite)
	}
	if r.CacheWrite1h {
		most = max(most, p.filled().CacheWrite1h)
	}
	if cached := min(count(r.CachedTokens), input); cached > 0 {
		most = (float64(cached)*p.filled().CachedInput + float64(input-cached)*most) / float64(input)
	}
	return Price{Input: most, Output: p.Output}
}

// atMost returns the most that a call may cost at a price that was reserved, rounded up.
func (p Price) atMost(input, output int64) int64 {
	return nanos(math.Ceil(1e3 * (float64(input)*p.Input + float64(output)*p.Output)))
}

// affords returns how many of the output tokens fit in the remaining cost after the input. The
// result may be one too low.
func (p Price) affords(input, output, left int64) int64 {
	if p.atMost(input, output) <= left {
		return output
	}
	rest := float64(left) - 1e3*float64(input)*p.Input
	output = min(output, int64(max(0, rest)/(1e3*p.Output)))
	for output > 0 && p.atMost(input, output) > left { // by rounding: once, if ever
		output--
	}
	return output
}

// UnmarshalJSON requires the prices of input and of output, because a missing price is unknown and
// not zero.
func (p *Price) UnmarshalJSON(data []byte) error {
	return p.decode(func(v any) error { return json.Unmarshal(data, v) })
}

// UnmarshalYAML does for YAML what UnmarshalJSON does for JSON.
func (p *Price) UnmarshalYAML(decode func(any) error) error { return p.decode(decode) }

func (p *Price) decode(decode func(any) error) error {
	var in struct {
		Input        *float64 `json:"input" yaml:"input"`
		Output       *float64 `json:"output" yaml:"output"`
		CachedInput  float64  `json:"cached_input" yaml:"cached_input"`
		CacheWrite   float64  `json:"cache_write" yaml:"cache_write"`
		CacheWrite1h float64  `json:"cache_write_1h" yaml:"cache_write_1h"`
	}
	if err := decode(&in); err != nil {
		return err
	}
	if in.Input == nil || in.Output == nil {
		return errors.New("price: both input and output are needed, per million tokens; 0 is free")
	}
	price := Price{Input: *in.Input, Output: *in.Output, CachedInput: in.CachedInput,
		CacheWrite: in.CacheWrite, CacheWrite1h: in.CacheWrite1h}
	if err := price.check(); err != nil {
		return err
	}
	*p = price
	return nil
}
