// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
)

// performance is told what a simulation has found, under "performance", and what
// the one before has earned, under "before", if there was one. It answers with the
// improvement in per cent, and with the best of those that the simulation has tried
// around.
func performance(in map[string]any) (map[string]any, error) {
	found, _ := in["performance"].(map[string]any)
	profit, ok := found["profit"].(float64)
	around, _ := found["around"].([]any)
	if !ok || len(around) == 0 {
		return nil, errors.New(`send {"performance": {"profit": 100, "around": [{"profit": 120, …}, …]}, "before": 90}`)
	}
	out := make(map[string]any)
	if before, ok := in["before"].(float64); ok && before > 0 {
		out["improvement_percent"] = math.Round((profit-before)/before*1000) / 10
	}
	most := math.Inf(-1)
	for _, next := range around {
		if next, ok := next.(map[string]any); ok {
			if p, ok := next["profit"].(float64); ok && p > most {
				most, out["best_in_reach"] = p, next
			}
		}
	}
	out["better_in_reach"] = most > profit
	return out, nil
}
