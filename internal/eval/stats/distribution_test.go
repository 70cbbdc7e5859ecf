// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(got, want, relative float64) bool { return math.Abs(got-want) <= relative*math.Abs(want) }

// The figures are mpmath's, with 30 digits.
func TestTQuantilesAreThoseOfReference(t *testing.T) {
	for _, tt := range []struct{ alpha, freedom, want float64 }{
		{0.5, 1, 1}, {0.4, 1, 1.37638192047}, {0.1, 1, 6.31375151468},
		{0.05, 1, 12.7062047362}, {0.01, 1, 63.6567411629}, {0.000005, 1, 127323.954471},
		{0.5, 2, 0.816496580928}, {0.1, 2, 2.91998558035}, {0.05, 2, 4.30265272975}, {0.000005, 2, 447.211918447},
		{0.4, 3.5, 0.956758833932}, {0.05, 3.5, 2.94008863798}, {0.01, 3.5, 5.08570222309}, {0.000005, 3.5, 46.971992774},
		{0.5, 5, 0.7266868438}, {0.1, 5, 2.01504837333}, {0.05, 5, 2.57058183564}, {0.000005, 5, 20.5913269954},
		{0.4, 10, 0.879057828551}, {0.05, 10, 2.22813885199}, {0.01, 10, 3.16927267262}, {0.000005, 10, 8.81218487636},
		{0.4, 29, 0.854191985882}, {0.1, 29, 1.69912702653}, {0.05, 29, 2.04522964213}, {0.000005, 29, 5.5849923837},
		{0.4, 100, 0.845230424491}, {0.05, 100, 1.98397151852}, {0.000005, 100, 4.82635276972},
		{0.4, 1000, 0.841980822162}, {0.05, 1000, 1.96233908083}, {0.000005, 1000, 4.58982802573},
		{0.5, 1e6, 0.674489995531}, {0.4, 1e6, 0.841621593014},
		{0.05, 1e12, 1.95996398454}, {0.000005, 1e12, 4.56478773028}, // of the normal distribution
	} {
		if got := tQuantile(tt.alpha, tt.freedom); !near(got, tt.want, 5e-9) {
			t.Errorf("tQuantile(%v, %v) = %.12g, want %.12g", tt.alpha, tt.freedom, got, tt.want)
		}
	}
}

func TestBetaIsThatOfReference(t *testing.T) {
	for _, tt := range []struct{ x, a, b, want float64 }{
		{0, 2, 3, 0}, {1, 2, 3, 1}, {-1, 2, 3, 0}, {2, 2, 3, 1},
		{0.1, 0.5, 0.5, 0.2048327646991}, {0.5, 2, 3, 0.6875}, {0.9, 2, 3, 0.9963}, {0.3, 0.5, 14.5, 0.9985741725821},
		{0.999, 200, 0.5, 0.5272441070252}, {0.02, 30, 1, 1.073741824e-51},
		{0.6667, 1e4, 5e3, 0.5026871449127}, {1e-6, 0.5, 1e6, 0.8427008448382}, {0.501, 1e6, 1e6, 0.9976611505931}, {0.5, 1e6, 1e6, 0.5},
	} {
		if got := beta(tt.x, tt.a, tt.b); !near(got, tt.want, 2e-9) {
			t.Errorf("beta(%v, %v, %v) = %.13g, want %.13g", tt.x, tt.a, tt.b, got, tt.want)
		}
	}
}

func TestQuantilesInvertTheirDistributions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		alpha, freedom := math.Exp(-12*r.Float64()), math.Exp(16*r.Float64())
		if got := tails(tQuantile(alpha, freedom), freedom); alpha < 1 && !near(got, alpha, 1e-6) {
			t.Errorf("the quantile of %v with %v degrees has %v outside", alpha, freedom, got)
		}
		p, a, b := r.Float64(), 0.1+math.Exp(8*r.Float64()), 0.1+math.Exp(8*r.Float64())
		if got := beta(betaQuantile(p, a, b), a, b); math.Abs(got-p) > 1e-6 {
			t.Errorf("below the quantile of %v with %v and %v is %v", p, a, b, got)
		}
	}
}

// Weights whose sum is infinite once made it halve an interval of NaN for ever.
func TestQuantileOfUnknownIsUnknown(t *testing.T) {
	for _, a := range []float64{math.NaN(), math.Inf(1)} {
		if got := betaQuantile(0.5, a, 2); !math.IsNaN(got) {
			t.Errorf("with %v and 2: %v", a, got)
		}
		if got := betaQuantile(0.5, 2, a); !math.IsNaN(got) && got != 0 {
			t.Errorf("with 2 and %v: %v", a, got)
		}
	}
	obs := []Observation{{Case: "a", Weight: 1e308, A: []float64{1}}, {Case: "b", Weight: 1e308, A: []float64{0}}, {Case: "c", Weight: 1e308, A: []float64{1}}}
	Mean(obs, Options{}) // ends
}
