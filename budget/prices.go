// SPDX-License-Identifier: Apache-2.0

package budget

import (
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

func (p Price) check() error {
	for _, f := range []float64{p.Input, p.Output, p.CachedInput} {
		if !(f >= 0) || math.IsInf(f, 1) {
			return fmt.Errorf("price %v: want 0 or more per million tokens", f)
		}
	}
	return nil
}

// billionths returns the cost of tokens in billionths; a token costs a millionth of the price.
func (p Price) billionths(input, cached, output int64) float64 {
	c := p.CachedInput
	if c == 0 {
		c = p.Input
	}
	return 1e3 * (float64(input)*p.Input + float64(cached)*c + float64(output)*p.Output)
}

// atMost is the most that a call may cost, rounded up.
func (p Price) atMost(input, output int64) int64 {
	return nanos(math.Ceil(1e3 * (float64(input)*max(p.Input, p.CachedInput) + float64(output)*p.Output)))
}

// affords returns how many of the output tokens fit in the remaining cost after the input. The
// result may be one too low.
func (p Price) affords(input, output, left int64) int64 {
	if p.atMost(input, output) <= left {
		return output
	}
	rest := float64(left) - 1e3*float64(input)*max(p.Input, p.CachedInput)
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
		Input       *float64 `json:"input" yaml:"input"`
		Output      *float64 `json:"output" yaml:"output"`
		CachedInput float64  `json:"cached_input" yaml:"cached_input"`
	}
	if err := decode(&in); err != nil {
		return err
	}
	if in.Input == nil || in.Output == nil {
		return errors.New("price: both input and output are needed, per million tokens; 0 is free")
	}
	price := Price{Input: *in.Input, Output: *in.Output, CachedInput: in.CachedInput}
	if err := price.check(); err != nil {
		return err
	}
	*p = price
	return nil
}
