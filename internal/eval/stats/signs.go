// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

const (
	// mostSigns is the largest number of units that differ of which all signs are tried.
	mostSigns = 18
	// drawnSigns is how many are drawn of more units, always the same ones.
	drawnSigns = 20_000
)

// bySigns returns how often the mean is at least as far from 0 as here if the sign of each unit is chance, as it is if neither version is
// better. Student's interval takes the differences for normal. If all are equally large, such as of cases that one version always passes and
// the other never, it alone would call two equal versions of seven cases better or worse in 12% of comparisons.
func (s *sample) bySigns() float64 {
	n := len(s.sums)
	if n == 0 {
		return 1
	}
	total, size := 0.0, 0.0
	for _, x := range s.sums {
		total, size = total+x, size+math.Abs(x)
	}
	far := math.Abs(total) - tiny*size
	extreme := 0
	if n <= mostSigns {
		draws := 1 << (n - 1) // the last sign stays, because the opposite of all signs is as far from 0
		for i := range draws {
			if math.Abs(total) >= far {
				extreme++
			}
			// The next signs differ from these in one place (Gray's code).
			k := bits.TrailingZeros(uint(i + 1))
			if i+1 < draws {
				sign := 1.0
				if (i^i>>1)>>k&1 == 0 {
					sign = -1
				}
				total += 2 * sign * s.sums[k]
			}
		}
		return float64(extreme) / float64(draws)
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for range drawnSigns {
		sum, signs := 0.0, uint64(0)
		for i, x := range s.sums {
			if i%64 == 0 {
				signs = r.Uint64()
			}
			sum += x * float64(int(signs>>(i%64)&1)*2-1)
		}
		if math.Abs(sum) >= far {
			extreme++
		}
	}
	return float64(extreme+1) / (drawnSigns + 1)
}
